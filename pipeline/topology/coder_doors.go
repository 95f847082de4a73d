package topology

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"penstock/consumers/executor/coder"
	"penstock/consumers/executor/coder/admin"
	"penstock/consumers/executor/coder/codes"
	"penstock/consumers/executor/coder/s3front"
	"penstock/infra/clock"
	"penstock/infra/errorkind"
	"penstock/pipeline/config"
)

// doors opens the S3 API and the operator's, and returns where they answer and how the
// coder is scrubbed so that the operator sees it.
func (c *Coder) doors(v *alone, x *config.Coder, o s3front.Options, one *coder.Coder, chooser *codes.Chooser) (string, scrub, error) {
	o.Coder = one
	front, err := s3front.New(o)
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
	ao := admin.Options{Coder: one, Codes: chooser, Listen: x.Admin, Name: x.Name, Layout: x.LayoutName(), Logger: &part}
	if token != "" {
		ao.Tokens = []string{token}
	}
	desk, err := admin.New(ao)
	if err != nil {
		return "", nil, fmt.Errorf("coder %s: %w", x.Name, err)
	}
	v.parts.Start("admin", desk.Run)
	all := func(ctx context.Context, o coder.ScrubOptions) (coder.Report, error) { return desk.Scrub(ctx, o, nil) }
	return where + ", status at http://" + desk.Addr(), all, nil
}

// front is who may come in by the S3 API, and how. It reads all files that it needs: what
// is wrong with one shows before the stores are claimed.
func (c *Coder) front(x *config.Coder, observe func(s3front.Request)) (o s3front.Options, err error) {
	part := c.part("front")
	o = s3front.Options{Listen: x.Listen, Region: x.Region, Public: x.Public, Logger: &part, Observe: observe, Rate: x.BodyRate.In(time.Second)}
	if o.Keys, err = s3front.ReadKeys(x.KeysFile); err != nil {
		return o, errorkind.Errorf(ErrOptions, "keys_file: %w", err)
	}
	if o.Region == "" {
		o.Region = "us-east-1"
	}
	if x.TLS.Cert != "" {
		cert, err := newCertificate(x.TLS.Cert, x.TLS.Key, clock.System(), part)
		if err != nil {
			return o, fmt.Errorf("tls: %w", err)
		}
		o.TLS = &tls.Config{GetCertificate: cert.get, MinVersion: tls.VersionTLS12}
	}
	return o, nil
}
