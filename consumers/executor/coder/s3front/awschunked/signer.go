package awschunked

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"hash"
	"strings"
)

// Signer checks the chain of signatures: each covers the one before it, the first of
// them that of the request's headers.
type Signer struct {
	key         []byte
	date, scope string
	before      string // the signature before
	claimed     string // that of the chunk under way
}

// NewSigner returns the Signer of a request: of the client's secret, the day (YYYYMMDD),
// the region, the service, the instant of X-Amz-Date, and the signature of its headers.
func NewSigner(secret, day, region, service, date, signature string) *Signer {
	key := []byte("AWS4" + secret)
	for _, part := range []string{day, region, service, "aws4_request"} {
		key = sign(key, part)
	}
	return &Signer{
		key: key, date: date, before: signature,
		scope: strings.Join([]string{day, region, service, "aws4_request"}, "/"),
	}
}

// signatureLength is that of an HMAC-SHA256 in hexadecimal.
const signatureLength = 2 * sha256.Size

func (s *Signer) newHash() hash.Hash { return sha256.New() }

// announce reads the extension that holds a chunk's signature.
func (s *Signer) announce(ext []byte) error {
	claimed, ok := bytes.CutPrefix(ext, []byte("chunk-signature="))
	if !ok || len(claimed) != signatureLength {
		return ErrMalformed
	}
	s.claimed = string(claimed)
	return nil
}

// emptyHash is the SHA-256 of nothing: chunks have no headers.
const emptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// chunk tells whether the chunk under way, whose SHA-256 is sum, is what was signed.
func (s *Signer) chunk(sum []byte) bool {
	return s.advance(s.claimed, "AWS4-HMAC-SHA256-PAYLOAD", emptyHash, hex.EncodeToString(sum))
}

// trailer tells whether the trailer is what its signature line says.
func (s *Signer) trailer(name, value string, line []byte) bool {
	claimed, ok := bytes.CutPrefix(line, []byte("x-amz-trailer-signature:"))
	sum := sha256.Sum256([]byte(name + ":" + value + "\n"))
	return ok && s.advance(string(bytes.TrimSpace(claimed)), "AWS4-HMAC-SHA256-TRAILER", hex.EncodeToString(sum[:]))
}

// advance compares a signature with the one that is due, which then is the one before.
func (s *Signer) advance(claimed, algorithm string, parts ...string) bool {
	text := strings.Join(append([]string{algorithm, s.date, s.scope, s.before}, parts...), "\n")
	due := hex.EncodeToString(sign(s.key, text))
	s.before = due
	return hmac.Equal([]byte(claimed), []byte(due))
}

func sign(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	_, _ = m.Write([]byte(text)) // never fails
	return m.Sum(nil)
}
