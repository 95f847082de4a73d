package config

import (
	"strings"
	"testing"
)

func TestStoresAreRead(t *testing.T) {
	t.Setenv("EAST_PASSWORD", "s3cret")
	for text, want := range map[string]Store{
		"dir:data//east/":                             {Kind: "dir", URL: "data/east"},
		"jetstream:east_data":                         {Kind: "jetstream", URL: "east_data"},
		"postgres://me:${EAST_PASSWORD}@db:5433/east": {Kind: "postgres", URL: "postgres://me:s3cret@db:5433/east"},
		"postgresql:///east?host=/run/pg":             {Kind: "postgres", URL: "postgresql:///east?host=/run/pg"},
		"s3://bucket":                                 {Kind: "s3", Bucket: "bucket", Endpoint: "https://s3.amazonaws.com"},
		"s3://bucket/a/b/?endpoint=http://h:7070&region=eu&credentials=EAST": {
			Kind: "s3", Bucket: "bucket", Prefix: "a/b", Endpoint: "http://h:7070", Region: "eu", Credentials: "EAST",
		},
	} {
		got, err := ParseStore(text)
		if err != nil || got != want {
			t.Errorf("%s: got %+v, %v; expected %+v", text, got, err, want)
		}
		if strings.Contains(got.Place(), "s3cret") {
			t.Errorf("the place of %s shows the password: %s", text, got.Place())
		}
	}
}

func TestStoresThatCannotBe(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "dir:FOLDER",
		"dir:":                          "dir:FOLDER",
		"ftp:x":                         "dir:FOLDER",
		"jetstream:a.b":                 "jetstream:BUCKET",
		"jetstream:locations":           "Penstock's own",
		"postgres://db":                 "DATABASE",
		"s3:bucket":                     "s3://BUCKET",
		"s3://b?endpoint=h":             "endpoint",
		"s3://b?credentials=east":       "capital letters",
		"s3://b?acl=public":             "no option of s3",
		"postgres://me:${UNSET_1}@db/e": "UNSET_1 to be set",
	} {
		if got, err := ParseStore(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %+v, %v; expected a fault that says %q", text, got, err, want)
		}
	}
	if _, err := checkStore("postgres://me:${UNSET_1}@db/e"); err != nil {
		t.Errorf("a variable that is not set is no fault of the file: %v", err)
	}
}

// TestFaultsDoNotShowPasswords guards what is printed and logged.
func TestFaultsDoNotShowPasswords(t *testing.T) {
	_, err := Read("c.yaml", []byte("sites:\n  - {name: a, lat: 1, lon: 1, capacity: 1MB/h, store: \"postgres://me:hidden@db\"}\n"))
	if err == nil || strings.Contains(err.Error(), "hidden") {
		t.Errorf("got %v; expected a fault without the password", err)
	}
}
