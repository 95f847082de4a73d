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

// entrances are who may come in, by the S3 API and as an operator, and how.
type entrances struct {
	front s3front.Options
	// desk is where status is asked for and scrubs are; without an address it isn't opened.
	desk admin.Options
}

// entrances reads all files that entrances need: what is wrong with one shows before the
// stores are claimed, and before an instance that has them is ended by --adopt.
func (c *Coder) entrances(x *config.Coder, observe func(s3front.Request)) (e entrances, err error) {
	if e.front, err = c.front(x, observe); err != nil {
		return e, err
	}
	if x.Admin == "" {
		return e, nil
	}
	part := c.part("admin")
	e.desk = admin.Options{Listen: x.Admin, Name: x.Name, Layout: x.LayoutName(), Logger: &part}
	token, err := SecretFile("token_file", x.TokenFile)
	if token != "" {
		e.desk.Tokens = []string{token}
	}
	return e, err
}

// open opens the S3 API and the operator's, and returns where they answer and how the
// coder is scrubbed so that the operator sees it.
func (e entrances) open(v *alone, one *coder.Coder, chooser *codes.Chooser) (string, scrub, error) {
	e.front.Coder = one
	front, err := s3front.New(e.front)
	if err != nil {
		return "", nil, err
	}
	where := "http://" + front.Addr()
	if e.front.TLS != nil {
		where = "https://" + front.Addr()
	}
	v.parts.Start("front", front.Run)
	if e.desk.Listen == "" {
		return where, func(ctx context.Context, o coder.ScrubOptions) (coder.Report, error) { return one.Scrub(ctx, o, nil) }, nil
	}
	e.desk.Coder, e.desk.Codes = one, chooser
	desk, err := admin.New(e.desk)
	if err != nil {
		return "", nil, err
	}
	v.parts.Start("admin", desk.Run)
	all := func(ctx context.Context, o coder.ScrubOptions) (coder.Report, error) { return desk.Scrub(ctx, o, nil) }
	return where + ", status at http://" + desk.Addr(), all, nil
}

// front is who may come in by the S3 API, and how.
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
