package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"penstock/infra/testserver"
)

// What cannot be is said before anything listens for spans.
func TestReceiveRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, junk := filepath.Join(dir, "empty"), filepath.Join(dir, "junk.pem")
	writeFile(t, empty, "\n")
	writeFile(t, junk, "no certificate")
	config := func(spans string) string {
		name := filepath.Join(t.TempDir(), "penstock.yaml")
		writeFile(t, name, fmt.Sprintf("sites:\n  - {name: us-east, lat: 37, lon: -79, capacity: 1GB/h}\nspans: {%s}\ntelemetry: {listen: \"\"}\n", spans))
		return name
	}
	at := testserver.FreeAddress(t)
	for _, c := range []struct {
		spans string
		args  []string
		code  int
		says  string
	}{
		{`peers: ["10.0.0.1:4317", "10.0.0.2:4317"]`, []string{"--grpc", at}, 2, "--self says which of them this one is"},
		{`peers: ["10.0.0.1:4317"]`, []string{"--self", "10.0.0.1:4317", "--grpc", "off", "--http", at}, 2, "who shares traces needs a listener for gRPC"},
		{`token_file: ` + empty, []string{"--grpc", at}, 2, "it is empty"},
		{`token_file: ` + filepath.Join(dir, "gone"), []string{"--grpc", at}, 1, "spans.token_file cannot be read"},
		{``, []string{"--grpc", "0.0.0.0:0", "--http", "off"}, 2, "a token is needed off loopback"},
		{``, []string{"--grpc", "off", "--http", "off"}, 2, "neither --grpc (spans.grpc) nor --http"},
		{`tls: {cert: ` + junk + `, key: ` + junk + `}`, []string{"--grpc", at}, 1, "spans.tls"},
		{``, []string{"--grpc", "nowhere"}, 1, "nowhere"},
		{`http: "0.0.0.0:4318"`, nil, 2, "spans.token_file"},
	} {
		args := append([]string{"receive", "-c", config(c.spans), "--nats", "nats://127.0.0.1:1", "--name", "r", "--state", t.TempDir()}, c.args...)
		if c.args != nil && !strings.Contains(strings.Join(c.args, " "), "--http") {
			args = append(args, "--http", "off")
		}
		_, errs, code := command(t, args...)
		if code != c.code || !strings.Contains(errs, c.says) {
			t.Errorf("%s %q: exit code %d, expected %d and %q:\n%s", c.spans, c.args, code, c.code, c.says, errs)
		}
	}
}
