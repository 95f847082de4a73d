package config

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"penstock/schemas/subject"
)

// Store is where a site's data lives.
type Store struct {
	// Kind is dir, postgres, s3 or jetstream.
	Kind string
	// URL is the address without its kind: a folder, a database's URL, or the
	// name of a bucket; of s3 it is empty.
	URL string
	// Of s3: endpoint with its scheme, region, bucket, the prefix of all keys, and
	// the prefix of the environment's names of access and secret key.
	Endpoint, Region, Bucket, Prefix, Credentials string
}

// ownBuckets are what Penstock keeps for itself on the bus.
var ownBuckets = []string{subject.LocationsKV, subject.OperatorKV, subject.MembersKV, subject.EntriesKV, subject.SnapshotsBucket}

const expectedStore = "dir:FOLDER, postgres://USER@HOST/DATABASE, s3://BUCKET/PREFIX?endpoint=URL&region=NAME or jetstream:BUCKET"

// ParseStore reads the address of a store:
//
//	dir:FOLDER
//	postgres://USER:PASSWORD@HOST:PORT/DATABASE?…   as libpq takes it
//	s3://BUCKET/PREFIX?endpoint=URL&region=NAME&credentials=NAME
//	jetstream:BUCKET                                on the bus
//
// ${NAME} stands for a variable of the environment, so that secrets need not be
// in the file. The keys of an s3 store with credentials=NAME are in
// NAME_ACCESS_KEY_ID and NAME_SECRET_ACCESS_KEY; without, they are those of AWS's
// own variables, credentials file or machine role. The error says what was
// expected.
func ParseStore(text string) (Store, error) {
	text, err := expand(text, os.LookupEnv)
	if err != nil {
		return Store{}, err
	}
	return parseStore(text)
}

func parseStore(text string) (Store, error) {
	kind, rest, _ := strings.Cut(text, ":")
	s := Store{Kind: kind, URL: rest}
	switch {
	case kind == "dir" && rest != "":
		s.URL = path.Clean(rest)
	case kind == "jetstream" && slices.Contains(ownBuckets, rest):
		return Store{}, fmt.Errorf("another bucket: %s is Penstock's own", rest)
	case kind == "jetstream" && bucketName.MatchString(rest):
	case kind == "postgres" || kind == "postgresql":
		s.Kind, s.URL = "postgres", text
		u, err := url.Parse(text)
		if err != nil || strings.Trim(u.Path, "/") == "" && !u.Query().Has("dbname") {
			return Store{}, errors.New("postgres://USER@HOST/DATABASE")
		}
	case kind == "s3":
		return parseS3(text)
	default:
		return Store{}, errors.New(expectedStore)
	}
	return s, nil
}

var (
	bucketName  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)
	variable    = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)
	credentials = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
)

// expand puts variables of the environment into a text.
func expand(text string, lookup func(string) (string, bool)) (string, error) {
	var missing []string
	out := variable.ReplaceAllStringFunc(text, func(m string) string {
		name := m[2 : len(m)-1]
		v, ok := lookup(name)
		if !ok {
			missing = append(missing, name)
		}
		return v
	})
	if len(missing) > 0 {
		return "", fmt.Errorf("%s to be set in the environment", strings.Join(missing, ", "))
	}
	return out, nil
}

func parseS3(text string) (Store, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return Store{}, errors.New("s3://BUCKET/PREFIX?endpoint=URL&region=NAME")
	}
	q := u.Query()
	s := Store{
		Kind: "s3", Bucket: u.Host, Prefix: strings.Trim(u.Path, "/"), Endpoint: q.Get("endpoint"), Region: q.Get("region"),
		Credentials: q.Get("credentials"),
	}
	for name := range q {
		if name != "endpoint" && name != "region" && name != "credentials" {
			return Store{}, fmt.Errorf("no option of s3 but endpoint, region and credentials (got %s)", name)
		}
	}
	if s.Endpoint == "" {
		s.Endpoint = "https://s3.amazonaws.com"
	}
	e, err := url.Parse(s.Endpoint)
	if err != nil || e.Host == "" || e.Scheme != "http" && e.Scheme != "https" {
		return Store{}, errors.New("endpoint to be an http or https URL")
	}
	if s.Credentials != "" && !credentials.MatchString(s.Credentials) {
		return Store{}, errors.New("credentials to be a name of capital letters, such as EAST for EAST_ACCESS_KEY_ID")
	}
	return s, nil
}

// checkStore parses an address whose variables need not be set: a replay does
// without the stores.
func checkStore(text string) (Store, error) {
	text, _ = expand(text, func(name string) (string, bool) {
		v, ok := os.LookupEnv(name)
		if !ok {
			v = name
		}
		return v, true
	})
	return parseStore(text)
}

// withoutPassword is an address as it may be shown.
func withoutPassword(text string) string {
	if u, err := url.Parse(text); err == nil && u.User != nil {
		return u.Redacted()
	}
	return text
}

// Keys returns access and secret key of an s3 store from the environment. Both are
// empty without credentials in the address: then the machine's own ways are tried.
func (s Store) Keys() (access, secret string, err error) {
	if s.Credentials == "" {
		return "", "", nil
	}
	access, secret = os.Getenv(s.Credentials+"_ACCESS_KEY_ID"), os.Getenv(s.Credentials+"_SECRET_ACCESS_KEY")
	if access == "" || secret == "" {
		return "", "", fmt.Errorf("%s_ACCESS_KEY_ID and %[1]s_SECRET_ACCESS_KEY are not set in the environment", s.Credentials)
	}
	return access, secret, nil
}

// Place names the store without secrets: two sites with the same one would share
// their data.
func (s Store) Place() string {
	switch s.Kind {
	case "s3":
		return fmt.Sprintf("s3 %s/%s at %s", s.Bucket, s.Prefix, s.Endpoint)
	case "postgres":
		u, err := url.Parse(s.URL)
		if err != nil {
			return "postgres"
		}
		host := u.Host
		if q := u.Query(); q.Get("host") != "" {
			host = q.Get("host") + ":" + q.Get("port")
		}
		name := strings.Trim(u.Path, "/")
		if name == "" {
			name = u.Query().Get("dbname")
		}
		return fmt.Sprintf("postgres %s at %s", name, host)
	}
	return s.Kind + ":" + s.URL
}
