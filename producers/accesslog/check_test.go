package accesslog

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFieldsThatNoLineHas: whatever names the fields of a line, a mapping from
// another one is refused with its place and those that there are.
func TestFieldsThatNoLineHas(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ lines, columns, says string }{
		{`nginx: '$time_iso8601 "$request" $http_x_tenant'`, `owner: {from: nosuch}`, "8: columns: owner: no line has a field nosuch, expected one of time_iso8601, request, http_x_tenant"},
		{`nginx: '$time_iso8601 "$request" $http_x_tenant'`, `owner: {from: HTTP_X_tenant}`, "8: columns: owner: no line has a field HTTP_X_tenant, expected one of"},
		{`nginx: '$time_iso8601 "$request" $http_x_tenant'`, `owner: {from: http_x_tenant}`, ""},
		{`apache: '%t "%r" %{X-Tenant}i'`, `owner: '{X-Tenant}i'`, "8: columns: owner: no line has a field {X-Tenant}i, expected one of t, r, {x-tenant}i"},
		{`apache: '%t "%r" %{X-Tenant}i'`, `owner: '{x-tenant}i'`, ""},
		{`haproxy: '%tr %HM %HU'`, `owner: [HU, {from: hr}]`, "8: columns: owner: no line has a field hr, expected one of tr, HM, HU"},
		{`envoy: '%START_TIME% "%REQ(:METHOD)% %REQ(:PATH)%"'`, `bytes: {sum: [BYTES_SENT]}`, "no line has a field BYTES_SENT, expected one of START_TIME, REQ(:METHOD), REQ(:PATH)"},
		{`text: '{time} {a} {b}'`, `{time: time, op: a, wait_us: {from: b, minus: c, unit: ms}}`, "8: columns: wait_us: no line has a field c, expected one of time, a, b"},
		{`text: '{time} {a} {b}'`, `{time: time, op: a, id: {expr: 'field("b") + field("c")'}}`, "columns: id: no line has a field c, expected one of time, a, b"},
		{`regexp: '^(?P<t>\S+) (x)(?P<u>\S+)'`, `{time: t, target: u, id: v}`, "columns: id: no line has a field v, expected one of t, u"},
		{`delimited: {separator: ";", names: [T, op, Name]}`, `{time: t, op: op, owner: name, id: nome}`, "columns: id: no line has a field nome, expected one of t, op, name"},
		// These name their fields themselves.
		{`json: true`, `{time: t, op: op, owner: nosuch}`, ""},
		{`delimited: {separator: ";"}`, `{time: t, op: op, owner: nosuch}`, ""},
	} {
		path := filepath.Join(dir, "nginx.yaml") // The name of one of ours changes nothing.
		file := "about: |\n  several\n  lines\nlines:\n  - " + c.lines + "\n\ncolumns:\n  " + c.columns + "\n"
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Find(path)
		switch {
		case c.says == "" && err != nil:
			t.Errorf("%s\n%v", file, err)
		case c.says != "" && (!errors.Is(err, ErrFormat) || !strings.HasPrefix(err.Error(), path+":8: columns: ") || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s\n%v\nexpected %s", file, err, c.says)
		}
	}
	// A field of any shape is enough, and one shape that names its own.
	for file, says := range map[string]string{
		"lines: [{text: '{time} {a}'}, {text: '{time} {b} {c}'}]\ncolumns: {time: time, op: [a, b], id: [c, d]}":              "columns: id: no line has a field d, expected one of time, a, b, c",
		"lines: [{text: '{time} {a}'}, {text: '{time} {b} {c}'}]\ncolumns: {time: time, op: [a, b], id: c}":                   "",
		"lines: [{text: '{time} {a}'}, {json: true}]\ncolumns: {time: time, op: a, id: d}":                                    "",
		"like: combined\nlines: [{text: '[{time}] \"{request}\"'}]\ncolumns: {status: {default: 0}, owner: {from: tenant}}":   "columns: owner: no line has a field tenant, expected one of time, request",
		"lines: [{text: '{time} {a}'}]\ncolumns: {time: time, op: a, id: c, class: d}":                                        "columns: class: no line has a field d",
		"lines:\n- {text: '{time} {a}'}\ncolumns:\n  time: time\n  op: a\n  id:\n  - a\n  - {from: c}":                        "columns: id: no line has a field c",
		"lines: [{nginx: '$time_iso8601 \"$request\"'}]\ncolumns: {owner: {from: request, match: '/u/([^/ ]+)', none: true}}": "",
	} {
		_, err := Decode([]byte(file), "test")
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), "format test: "+says)) {
			t.Errorf("%s\n%v\nexpected %s", file, err, says)
		}
	}
}

// TestExplainOwners: of a column without a value it is said what goes on beneath.
func TestExplainOwners(t *testing.T) {
	t.Parallel()
	line := func(x string) string { return `192.0.2.1 [01/Jan/2020:00:00:00 +0000] "PUT /u/b HTTP/1.1" ` + x }
	format := func(columns string) string {
		return `{lines: [{text: '{host} [{time}] "{request}" {x}'}], like: combined, columns: {status: {default: 0}, bytes: {default: 0}, ` + columns + `}}`
	}
	for _, c := range []struct{ columns, x, want string }{
		{`owner: {from: x}`, "-", "request op=write owner=u|x no value for owner; owner=u is of the path (none: true leaves it empty)"},
		{`owner: {from: x, match: '^t-(.+)'}`, "q", "request op=write owner=u|x the mapping finds no value for owner in it; owner=u is of the path (none: true leaves it empty)"},
		{`owner: {from: x, match: '^t-(.+)'}`, "t-q", "request op=write owner=q|x owner=q"},
		{`owner: [x, {from: host}]`, "-", "host owner=192.0.2.1|request op=write owner=192.0.2.1|x no value for owner"},
		{`owner: {from: x, none: true}`, "-", "request op=write|x no value for owner| no owner"},
		{`owner: {none: true}`, "-", "request op=write|x no column takes it| no owner"},
		{`op: {from: x}`, "-", "request op=write owner=u|x no value for op; op=write is of the method"},
		{`user: {from: x, none: true}`, "-", "request op=write owner=u|x no value for user| no user"},
	} {
		var said []string
		for _, f := range ofYAML(t, format(c.columns)).Explain([]byte(line(c.x))).Fields {
			if f.Field == "request" || f.Field == "x" || f.Column == "owner" || f.Column == "user" {
				said = append(said, strings.TrimRight(f.Field+" "+f.Result+f.Why, " "))
			}
		}
		if got := strings.Join(said, "|"); got != c.want {
			t.Errorf("%s\n got %s\nwant %s", c.columns, got, c.want)
		}
	}
	fields := ofYAML(t, format(`user: {from: x}`)).Explain([]byte(line("-"))).Fields
	if why := fields[len(fields)-3].Why; !strings.HasPrefix(why, "no value for user; user=") || !strings.HasSuffix(why, " is of the client's address (none: true leaves it empty)") {
		t.Errorf("%+v", fields)
	}
}
