package doctor

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"penstock/consumers/executor/coder/chunks/s3"
	"penstock/consumers/executor/coder/s3front"
	"penstock/pipeline/config"
)

// elsewhere ends the hints on what only the machine of a coder needs to have.
const elsewhere = "; if the coder runs on another machine, look there, and here with --no-stores"

// coderParts looks at what coders need where they run: their files and stores.
func (x *examination) coderParts(ctx context.Context) {
	if x.Config == nil || !x.Coders {
		return
	}
	for i := range x.Config.Coders {
		k := &x.Config.Coders[i]
		x.keys(k)
		x.certificate(k)
		x.token(k)
		marks := make([]ownerMark, len(k.Stores))
		for j := range k.Stores {
			marks[j] = x.blobs(ctx, k, &k.Stores[j])
		}
		x.unmarked(k, marks)
	}
}

func (x *examination) keys(k *config.Coder) {
	what := "keys of coder " + k.Name
	keys, err := s3front.ReadKeys(k.KeysFile)
	if err != nil {
		x.add("configuration", what, Broken, "keys_file: "+err.Error(),
			"the coder refuses to start: make the file, a line for each client with an access key, a secret of 16 bytes or more, and perhaps read"+elsewhere)
		return
	}
	x.fine("configuration", what, "%d in %s", len(keys), k.KeysFile)
}

func (x *examination) certificate(k *config.Coder) {
	if k.TLS.Cert == "" {
		return
	}
	what := "certificate of coder " + k.Name
	pair, err := tls.LoadX509KeyPair(k.TLS.Cert, k.TLS.Key)
	if err != nil {
		x.add("configuration", what, Broken, "tls: "+err.Error(), "the coder refuses to start: tls.cert and tls.key must be a pair in PEM that this user may read"+elsewhere)
		return
	}
	if until := pair.Leaf.NotAfter; until.Before(x.Clock.Now()) {
		x.add("configuration", what, Look, fmt.Sprintf("%s ended on %s", k.TLS.Cert, until.Format("2006-01-02")), "clients refuse it: renew it; the coder reads the new files by itself")
		return
	}
	x.fine("configuration", what, "%s and its key are a pair", k.TLS.Cert)
}

// token looks at the token of the admin server; without one the file is not read.
func (x *examination) token(k *config.Coder) {
	if k.Admin == "" || k.TokenFile == "" {
		return
	}
	what := "token of coder " + k.Name
	b, err := os.ReadFile(k.TokenFile)
	switch {
	case err != nil:
		x.add("configuration", what, Broken, "token_file: "+err.Error(), "the coder refuses to start: make the file, with the token in it, readable by this user"+elsewhere)
	case strings.TrimSpace(string(b)) == "":
		x.add("configuration", what, Broken, k.TokenFile+" is empty", "the coder refuses to start: put a token into it"+elsewhere)
	default:
		x.fine("configuration", what, "%s can be read", k.TokenFile)
	}
}

// blobs looks at a store of a coder, and whether it has the coder's owner mark. Nothing is
// made or taken over: it may be in use.
func (x *examination) blobs(ctx context.Context, k *config.Coder, s *config.CoderStore) ownerMark {
	what := fmt.Sprintf("store %s of coder %s", s.Name, k.Name)
	at, err := config.ParseStore(s.URL)
	if err != nil {
		x.add("stores", what, Broken, "url: expected "+err.Error(), "the coder refuses to start: change the url, or set what it takes from the environment"+elsewhere)
		return markUnknown
	}
	ctx, cancel := x.within(ctx)
	defer cancel()
	switch at.Kind {
	case "dir":
		x.blobFolder(what, at.URL)
		return folderMark(at.URL, k.Name)
	case "jetstream":
		if x.client == nil {
			x.add("stores", what, Unknown, "it is on the bus, which was not reached", "name the coder's server with --nats")
		} else if err := x.client.Ready(ctx); err != nil {
			x.add("stores", what, Broken, err.Error(), "the coder waits for the bus when it starts: is it up?")
		} else {
			x.fine("stores", what, "the bus is reached; its stream is made by the first start, if it is not there yet")
		}
	default:
		return x.blobBucket(ctx, what, s.Name, k.Name, &at)
	}
	return markUnknown
}

// blobFolder looks whether a folder may be written to, or made.
func (x *examination) blobFolder(what, folder string) {
	const hint = "let this user read, write and enter it, or name another folder" + elsewhere
	above := folder
	for {
		info, err := os.Stat(above)
		if err == nil && !info.IsDir() {
			x.add("stores", what, Broken, above+" is no folder", hint)
			return
		}
		if err == nil {
			break
		}
		up := filepath.Dir(above)
		if !errors.Is(err, fs.ErrNotExist) || up == above {
			x.add("stores", what, Broken, err.Error(), hint)
			return
		}
		above = up
	}
	switch err := accessible(above); {
	case err != nil && above == folder:
		x.add("stores", what, Broken, err.Error(), hint)
	case err != nil:
		x.add("stores", what, Broken, fmt.Sprintf("%s is not there and can't be made: %v", folder, err), hint)
	case above != folder:
		x.fine("stores", what, "%s is not there yet: the first start makes it", folder)
	default:
		x.fine("stores", what, "%s can be written to", folder)
	}
}

// blobBucket looks for a bucket with the credentials that the coder would use.
func (x *examination) blobBucket(ctx context.Context, what, name, coder string, at *config.Store) ownerMark {
	access, secret, err := at.Keys()
	if err != nil {
		x.add("stores", what, Broken, err.Error(), "the coder refuses to start: set both where it is started"+elsewhere)
		return markUnknown
	}
	s, err := s3.New(s3.Options{
		Name: name, Endpoint: at.Endpoint, Region: at.Region, Bucket: at.Bucket, Prefix: at.Prefix, AccessKey: access, SecretKey: secret,
		Attempts: 1, Timeout: x.Timeout, Clock: x.Clock,
	})
	if err != nil {
		x.add("stores", what, Broken, err.Error(), "the coder refuses to start: change the url")
		return markUnknown
	}
	defer x.closing("stores", what, s.Close)
	if err := s.Check(ctx); err != nil {
		hint := "the coder takes it for dead: is the endpoint right, is the bucket made, and may these keys use it?"
		if at.Credentials == "" {
			hint += " The url names no credentials: AWS's own variables, its credentials file or the machine's role must give them"
		}
		x.add("stores", what, Broken, err.Error(), hint)
		return markUnknown
	}
	x.fine("stores", what, "bucket %s is reached", at.Bucket)
	return x.bucketMark(ctx, what, coder, s)
}
