package s3front

import (
	"net/http"

	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/s3api/controllers"
	"github.com/versity/versitygw/s3api/middlewares"
	"github.com/versity/versitygw/s3api/utils"
	"github.com/versity/versitygw/s3err"
)

// accounts are versitygw's view of the keys. Each is an administrator to it, so that it
// asks for no ACL and no policy: what a key may do is checked here.
type accounts struct {
	auth.IAMServiceSingle

	keys Keys
}

// GetUserAccount implements auth.IAMService.
func (a accounts) GetUserAccount(access string) (auth.Account, error) {
	k, known := a.keys[access]
	if !known {
		return auth.Account{}, auth.ErrNoSuchUser
	}
	return auth.Account{Access: k.Access, Secret: k.Secret, Role: auth.RoleAdmin}, nil
}

// ResolveAccounts implements auth.IAMService: it returns those that are not there.
func (a accounts) ResolveAccounts(names []string) (missing []string, err error) {
	for _, name := range names {
		if _, known := a.keys[name]; !known {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// serve answers a request whose names are set.
func (f *Front) serve(c fiber.Ctx, iam accounts) error {
	q := requestOf(c.RequestCtx())
	run := q.op.run
	if err := f.admit(c, q, iam); err != nil {
		run = func(fiber.Ctx) (*controllers.Response, error) { return &controllers.Response{}, err }
	}
	noted := func(c fiber.Ctx) (*controllers.Response, error) {
		r, err := run(c)
		if err != nil {
			q.code = codeOf(err)
		}
		return r, err
	}
	return controllers.ProcessController(c, noted, q.op.name, &controllers.Services{})
}

// admit says who a request is from and whether it may come in, and prepares its body.
// Its error is what is answered.
func (f *Front) admit(c fiber.Ctx, q *request, iam accounts) error {
	utils.ContextKeyRegion.Set(c, f.o.Region)
	utils.ContextKeyStartTime.Set(c, f.o.Clock.Now())
	utils.ContextKeyRootAccessKey.Set(c, owner)
	utils.ContextKeyAccount.Set(c, auth.Account{})
	utils.ContextKeyIsRoot.Set(c, false)
	utils.ContextKeyParsedAcl.Set(c, auth.ACL{Owner: owner})
	if q.fault != nil {
		return q.fault
	}
	if err := f.authenticate(c, q, iam); err != nil {
		return err
	}
	if q.op.fault != nil {
		return q.op.fault
	}
	if q.op.write && iam.keys[q.access].ReadOnly {
		return s3err.GetAPIError(s3err.ErrAccessDenied)
	}
	for _, field := range []string{"X-Amz-Expected-Bucket-Owner", "X-Amz-Source-Expected-Bucket-Owner"} {
		if expected := q.http.Header.Get(field); expected != "" && expected != owner {
			return s3err.GetAPIError(s3err.ErrAccessDenied)
		}
	}
	if err := unsupported(q.http.Header, c.Request().URI().QueryArgs()); err != nil {
		return err
	}
	return f.prepare(c, q)
}

// authenticate checks the signature of a request, in its headers or in its query, and of
// one that doesn't stream the digest of its body too.
func (f *Front) authenticate(c fiber.Ctx, q *request, iam accounts) error {
	if !q.op.stream {
		switch n := q.http.ContentLength; {
		case n < 0:
			return s3err.GetAPIError(s3err.ErrMissingContentLength)
		case n > maxBody:
			return s3err.GetMaxMessageLengthExceeded(maxBody)
		}
	}
	if q.http.Header.Get("Authorization") == "" && !utils.IsPresignedURLAuth(c) {
		return s3err.GetAPIError(s3err.ErrAccessDenied)
	}
	stream := q.op.stream
	err := middlewares.VerifyPresignedV4Signature(f.root, iam, f.o.Region, stream)(c)
	if err == nil {
		err = middlewares.VerifyV4Signature(f.root, iam, f.o.Region, stream, true, q.op.anyRegion)(c)
	}
	if q.raw.err != nil {
		// The digest that failed is that of a body that is not whole.
		err = q.raw.err
	}
	if err != nil {
		return err
	}
	if account, ok := utils.ContextKeyAccount.Get(c).(auth.Account); ok {
		q.access = account.Access
	}
	return nil
}

// prepare has the body of a request ready, and the name of what it copies.
func (f *Front) prepare(c fiber.Ctx, q *request) (err error) {
	switch {
	case q.op.stream:
		if q.body, err = newBody(q, f.o.Keys[q.access].Secret); err != nil {
			return err
		}
		utils.ContextKeyBodyReader.Set(c, q.body)
	case q.op.digest:
		err = middlewares.VerifyChecksums(false, true, true)(c)
	case q.http.Header.Get("Content-Md5") != "":
		err = middlewares.VerifyChecksums(false, false, false)(c)
	}
	if err != nil {
		return err
	}
	if q.op.header == copySource {
		if q.source, err = parseCopySource(q.http.Header.Get(copySource)); err != nil {
			return err
		}
		// versitygw takes some keys for paths and refuses them. The backend goes by what
		// was read here.
		c.Request().Header.Set(copySource, q.source.bucket+"/key")
	}
	return nil
}

var _ auth.IAMService = accounts{}

var _ http.Handler = (*Front)(nil)
