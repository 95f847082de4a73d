package recording

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// Digest returns "sha256:…" of the files' contents in their order: a hash of
// the hashes of the files, so that the border between two counts. Names and
// times of files don't count. It ends early with ctx. What is no regular file is
// refused with an error that wraps ErrOption.
func Digest(ctx context.Context, files []string) (string, error) {
	all := sha256.New()
	buf := make([]byte, 256<<10)
	for _, name := range files {
		if err := digestFile(ctx, name, all, buf); err != nil {
			return "", fmt.Errorf("digest of recording: %w", err)
		}
	}
	return "sha256:" + hex.EncodeToString(all.Sum(nil)), nil
}

func digestFile(ctx context.Context, name string, into io.Writer, buf []byte) error {
	f, err := openRegular(name)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Read(buf)
		sum.Write(buf[:n])
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
	}
	_, err = into.Write(sum.Sum(nil))
	return err
}
