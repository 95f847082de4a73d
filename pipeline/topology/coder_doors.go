package topology

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/admin"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/queue"
	"penstock/consumers/executor/coder/s3front"
	"penstock/consumers/executor/coder/tasklog"
	"penstock/infra/clock"
	"penstock/infra/errorkind"
	"penstock/pipeline/config"
)

// doors opens the S3 API and the operator's, and returns where they answer and how the
// coder is scrubbed so that the operator sees it.
func (c *Coder) doors(v *alone, x *config.Coder, one *coder.Coder, chooser *codes.Chooser, log *tasklog.Log) (string, scrub, error) {
	front, err := c.front(x, one, log)
	if err != nil {
		return "", nil, fmt.Errorf("coder %s: %w", x.Name, err)
	}
	where := "http://" + front.Addr()
	if x.TLS.Cert != "" {
		where = "https://" + front.Addr()
	}
	v.parts.Start("front", front.Run)
	if x.Admin == "" {
		return where, func(ctx context.Context, o coder.ScrubOptions) (coder.Report, error) { return one.Scrub(ctx, o, nil) }, nil
	}
	token, err := secretFile("coders.token_file", x.TokenFile)
	if err != nil {
		return "", nil, err
	}
	part := c.part("admin")
	o := admin.Options{Coder: one, Codes: chooser, Listen: x.Admin, Name: x.Name, Layout: x.LayoutName(), Logger: &part}
	if token != "" {
		o.Tokens = []string{token}
	}
	desk, err := admin.New(o)
	if err != nil {
		return "", nil, fmt.Errorf("coder %s: %w", x.Name, err)
	}
	v.parts.Start("admin", desk.Run)
	all := func(ctx context.Context, o coder.ScrubOptions) (coder.Report, error) { return desk.Scrub(ctx, o, nil) }
	return where + ", status at http://" + desk.Addr(), all, nil
}

// front makes the S3 API.
func (c *Coder) front(x *config.Coder, one *coder.Coder, log *tasklog.Log) (*s3front.Front, error) {
	keys, err := s3front.ReadKeys(x.KeysFile)
	if err != nil {
		return nil, errorkind.Errorf(ErrOptions, "keys_file: %w", err)
	}
	part := c.part("front")
	o := s3front.Options{Coder: one, Keys: keys, Listen: x.Listen, Region: x.Region, Public: x.Public, Logger: &part, Observe: logged(log)}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if x.TLS.Cert != "" {
		cert, err := newCertificate(x.TLS.Cert, x.TLS.Key, clock.System(), part)
		if err != nil {
			return nil, fmt.Errorf("tls: %w", err)
		}
		o.TLS = &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS12}
	}
	return s3front.New(o)
}

// logged tells the log of the requests that read or write objects.
func logged(log *tasklog.Log) func(s3front.Request) {
	return func(r s3front.Request) {
		q := tasklog.Request{Op: queue.Read, Bytes: r.Sent, Service: r.Took, Status: r.Status}
		switch r.Operation {
		case "GetObject":
		case "PutObject", "UploadPart":
			q.Op, q.Bytes = queue.Write, r.Received
		default:
			return // It moves no content.
		}
		if r.Status < http.StatusBadRequest || r.Status >= http.StatusInternalServerError {
			log.Request(q)
		}
	}
}
