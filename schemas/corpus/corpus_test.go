package corpus_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"penstock/schemas/control"
	"penstock/schemas/corpus"
	"penstock/schemas/event"
	schemas "penstock/schemas/jsonschema"
	"penstock/schemas/window"
)

// decode reads a message with the decoder of its kind. It reports false for
// kinds that only a schema describes.
func decode(f corpus.File) (message any, err error, has bool) {
	encoding := ""
	if f.S2 {
		encoding = event.EncodingS2
	}
	fields := func() event.Fields {
		var h event.Fields
		if err := json.Unmarshal(f.Data, &h); err != nil {
			panic(err)
		}
		return h
	}
	switch f.Kind {
	case "decision":
		message, err = control.DecodeDecision(f.Data)
	case "command":
		message, err = control.DecodeCommand(f.Data)
	case "outcome":
		message, err = control.DecodeOutcome(f.Data)
	case "location":
		message, err = control.DecodeLocation(f.Data)
	case "split":
		message, err = control.DecodeSplitAnswer(f.Data)
	case "operator":
		message, err = control.DecodeSwitch(f.Name, f.Data)
	case "commit":
		message, err = window.DecodeCommit(f.Data)
	case "pane":
		message, err = window.DecodeTable(f.Data)
	case "header":
		message, err = event.ParseHeader(fields())
	case "mark":
		message, err = event.ParseMark(fields(), 8)
	case "batch":
		into := new(event.Requests)
		message, err = into, new(event.Decoder).Decode(f.Data, encoding, into)
	case "lines", "request":
		into := new(event.Requests)
		message, err = into, new(event.Decoder).Decode(oneLine(f), event.EncodingJSONL, into)
	case "gauges":
		into := new(event.Gauges)
		message, err = into, new(event.GaugeDecoder).Decode(f.Data, encoding, into)
	default:
		return nil, nil, false
	}
	return message, err, true
}

// oneLine is a body of JSON Lines; a row that stands over several lines for the
// eye is put on one.
func oneLine(f corpus.File) []byte {
	var b bytes.Buffer
	if f.Kind == "lines" || json.Compact(&b, f.Data) != nil {
		return f.Data
	}
	return b.Bytes()
}

// validate checks a message against its schema. It reports false for kinds
// without one.
func validate(t *testing.T, compiled map[string]*jsonschema.Schema, f corpus.File) (err error, has bool) {
	t.Helper()
	s := compiled[f.Kind]
	if s == nil {
		return nil, false
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(f.Data))
	if err != nil {
		return err, true
	}
	return s.Validate(v), true
}

func compileAll(t *testing.T) map[string]*jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	out := map[string]*jsonschema.Schema{}
	for _, name := range schemas.Names() {
		b, err := schemas.Get(name)
		if err != nil {
			t.Fatal(err)
		}
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := c.AddResource(schemas.ID(name), v); err != nil {
			t.Fatal(err)
		}
		if out[name], err = c.Compile(schemas.ID(name)); err != nil {
			t.Fatal(err)
		}
		if out[name].DraftVersion != 2020 {
			t.Errorf("%s is of draft %d", name, out[name].DraftVersion)
		}
	}
	return out
}

func TestGoodOldAndNewerMessagesAreRead(t *testing.T) {
	compiled := compileAll(t)
	kinds := map[string]int{}
	for _, folder := range []string{corpus.Good, corpus.Old, corpus.Newer} {
		for _, f := range corpus.Files(folder) {
			kinds[f.Kind]++
			schemaErr, hasSchema := validate(t, compiled, f)
			_, decodeErr, hasDecoder := decode(f)
			// What was required later cannot be required of what was written before.
			if schemaErr != nil && folder != corpus.Old {
				t.Errorf("%s: schema: %v", f.Path(), schemaErr)
			}
			if decodeErr != nil {
				t.Errorf("%s: decoder: %v", f.Path(), decodeErr)
			}
			if !hasSchema && !hasDecoder {
				t.Errorf("%s: nothing reads a %s", f.Path(), f.Kind)
			}
		}
	}
	for _, k := range append(schemas.Names(), "header", "mark", "batch", "lines", "gauges", "pane") {
		if kinds[k] < 1 {
			t.Errorf("no message of kind %s", k)
		}
	}
}

// faults says of each bad message what the schema and the decoder find; "" is
// that they let it pass or that there is none.
var faults = map[string]struct{ schema, decoder string }{
	"batch-half":                      {"", "metadata of"},
	"batch-without-time":              {"", "column time: missing, expected timestamp[us, UTC]"},
	"command-coding-fewer-n":          {"", "field coding.write.n: got \"0 thresholds\", expected at least as many as of k"},
	"command-coding-less-than-whole":  {"/coding/read/r_max: minimum: got 0.5, want 1", "field coding.read.r_max: got \"0.5\", expected 1 to 128"},
	"command-coding-missing":          {"missing property 'coding'", "field coding: got \"\", expected a table"},
	"command-coding-negative":         {"/coding/model/read/psi_ms: minimum: got -10, want 0", "field coding.model.read.psi_ms: got \"-10\", expected 0 or more"},
	"command-coding-of-split":         {"missing property 'split'", "field split: got \"\", expected a table"},
	"command-coding-rising":           {"", "field coding.read.k[1]: got \"0.954\", expected 0 or more, at most the one before it"},
	"command-coding-too-many":         {"/coding/write/k: maxItems: got 32, want 31", "field coding.write.k: got \"32 thresholds\", expected a list of at most 31"},
	"command-coding-unknown-policy":   {"/coding/policy: value must be one of", "field coding.policy: got \"fastest\", expected tofec, greedy, static, replicate or hedge"},
	"command-coding-without-n":        {"missing property 'n'", "field coding.write.n: got \"0 thresholds\", expected a list of at most 127"},
	"command-long-owner":              {"/placement/moves/0/owner: maxLength: got 1,025, want 1,024", "field placement.moves[0]"},
	"command-long-owner-in-bytes":     {"", "expected owner of at most 1024 bytes"},
	"command-move-to-itself":          {"", "expected owner of at most 1024 bytes, from, another to"},
	"command-move-version-0":          {"/placement/moves/0/version: minimum: got 0, want 1", "a version of at least 1"},
	"command-move-version-negative":   {"/placement/moves/0/version: minimum: got -7, want 1", "cannot unmarshal number -7 into Go struct field"},
	"command-payload-of-another-kind": {"'not' failed", "field placement: got \"moves\", expected nothing, in a command of kind coding"},
	"command-servers-all-zero":        {"", "field servers.zone_weights: got \"a sum of 0\", expected a sum of more than 0"},
	"command-servers-missing":         {"missing property 'servers'", "field servers: got \"\", expected a table"},
	"command-servers-nameless":        {"/servers/on/1: minLength: got 0, want 1", "field servers.on[1]: got \"\", expected 1 to 1024 bytes"},
	"command-servers-negative-weight": {"/servers/zone_weights/b: minimum: got -0.25, want 0", "field servers.zone_weights[b]: got \"-0.25\", expected 0 to 1e9"},
	"command-servers-none-on":         {"/servers/on: minItems: got 0, want 1", "field servers.on: got \"no server\", expected at least one"},
	"command-servers-of-placement":    {"missing property 'placement'", "field placement: got \"\", expected moves"},
	"command-servers-on-and-off":      {"", "field servers.off[0]: got \"web-2\", expected each server once, on or off"},
	"command-servers-twice":           {"/servers/on: items at 0 and 1 are equal", "field servers.on[1]: got \"web-1\", expected each server once, on or off"},
	"command-servers-without-off":     {"missing property 'off'", "field servers.off: got \"\", expected a list"},
	"command-servers-without-weights": {"missing property 'zone_weights'", "field servers.zone_weights: got \"a sum of 0\", expected a sum of more than 0"},
	"command-split-all-zero":          {"", "field split.table[0].ratios: got \"a sum of 0\", expected a sum of 1"},
	"command-split-missing":           {"missing property 'split'", "field split: got \"\", expected a table"},
	"command-split-negative-share":    {"/split/table/0/ratios/1/share: minimum: got -0.1, want 0", "field split.table[0].ratios[1].share: got \"-0.1\", expected 0 to 1"},
	"command-split-no-sites":          {"/split/table/0/ratios: minItems: got 0, want 1", "field split.table[0].ratios: got \"0 sites\", expected 1 to 256"},
	"command-split-probe-of-nothing":  {"/split/probes/0/share: exclusiveMinimum: got 0, want 0", "field split.probes[0].share: got \"0\", expected more than 0, at most 1"},
	"command-split-row-twice":         {"", "field split.table[1]: got \"us-east to search\", expected each from_site and to once"},
	"command-split-site-twice":        {"", "field split.table[0].ratios[1].site: got \"us-east\", expected each site once"},
	"command-split-sum":               {"", "field split.table[0].ratios: got \"a sum of 0.75\", expected a sum of 1"},
	"command-split-without-table":     {"missing property 'table'", "field split.table: got \"\", expected rows"},
	"command-supersedes-itself":       {"", "field supersedes: got \"5\", expected an epoch below this one's"},
	"command-ttl-days":                {"/ttl: '1d' does not match pattern", "field ttl: got \"1d\", expected a duration such as 10m"},
	"command-ttl-number":              {"/ttl: got number, want string", "cannot unmarshal number into Go struct field Command.ttl of type string"},
	"command-without-payload":         {"missing property 'placement'", "field placement: got \"\", expected moves"},
	"commit-interval-backwards":       {"", "field incomplete[0]: got \"1431939800000000 to 1431939700000000\", expected an interval that does not end before it begins"},
	"commit-nameless-run":             {"/runs/0/run: minLength: got 0, want 1", "field runs[0].run: got \"\", expected the id of a run"},
	"commit-negative-partition":       {"/partition: minimum: got -3, want 0", "field partition: got \"-3\", expected 0 or more"},
	"commit-unknown-group":            {"/group: value must be one of 'owners', 'fast'", "field group: got \"slow\", expected owners or fast"},
	"commit-version-2":                {"/version: value must be 1", "field version: got \"2\", expected 1"},
	"commit-watermark-absurd":         {"", "field watermark: got \"9223372036854775807\", expected a time between 1900 and 2200 in µs, or none"},
	"commit-without-flush":            {"missing property 'flush'", "field flush: got \"\", expected the id of a flush"},
	"decision-epoch-0":                {"/commands/0/epoch: minimum: got 0, want 1", "field commands[0]"},
	"decision-half":                   {"in string literal", "in string literal"},
	"decision-local-time":             {"/window/start: '2015-05-17 10:00:00' is not valid date-time", "cannot parse"},
	"decision-reason-without-code":    {"/reasons/1: missing property 'code'", "field reasons[1]"},
	"decision-reasons-null":           {"/reasons: got null, want array", ""},
	"decision-state-no-digest":        {"/state: 'md5:", ""},
	"decision-unknown-kind":           {"/kind: value must be one of 'placement', 'split', 'servers', 'coding'", "field kind: got \"routing\", expected placement, split, servers or coding"},
	"decision-version-2":              {"/version: value must be 1", "field version: got \"2\", expected 1"},
	"decision-window-backwards":       {"", "field window: got \"2015-05-17T12:00:00Z to 2015-05-17T11:00:00Z\", expected a start before its end"},
	"gauge-negative-queue":            {"/queued", ""},
	"gauge-without-site":              {"missing property 'site'", ""},
	"header-dropped-backwards":        {"", "header Penstock-Dropped: got \"12-11;300;1431939600000000;1431939700000000\", expected first-last;rows;from;to"},
	"header-gzip":                     {"", "header Penstock-Encoding: got \"gzip\", expected none, s2 or jsonl"},
	"header-request-2":                {"", "header Penstock-Schema: got \"request/2\", expected request/1 or gauge/1"},
	"header-seq-0":                    {"", "header Penstock-Seq: got \"0\", expected a whole number of at least 1"},
	"header-too-many-rows":            {"", "header Penstock-Rows: got \"8193\", expected a whole number from 0 to 8192"},
	"header-watermark-in-words":       {"", "header Penstock-Watermark: got \"now\""},
	"header-without-run":              {"", "header Penstock-Run: got \"\", expected 1 to 128 characters"},
	"header-gauges-as-lines":          {"", "header Penstock-Encoding: got \"jsonl\", expected none or s2"},
	"lines-array":                     {"", "row 0: got \"[{\\\"time\\\":1431857103,\\\"op\\\":\\\"read\\\",\\\"bytes\\\":1}]\", expected a JSON object on one line"},
	"lines-bytes-absurd":              {"", "column bytes: row 0: got \"137438953473\", expected a whole number from 0 to 137438953472"},
	"lines-delay-of-ages":             {"", "column wait_us: row 0: got \"3162240000000001\", expected microseconds, at most 100 years either way"},
	"lines-fraction-of-a-byte":        {"", "column bytes: row 1: got \"1.5\", expected a whole number from 0 to 137438953472"},
	"lines-half":                      {"", "row 1: got \"{\\\"time\\\":1431857103,\\\"op\\\":\\\"re\", expected a JSON object on one line"},
	"lines-long-owner":                {"", "column owner: row 0 has 1025 bytes, expected at most 1024"},
	"lines-method":                    {"", "column op: row 0: got \"GET\", expected read or write"},
	"lines-north-of-the-pole":         {"", "column lat: row 0: got \"90.5\", expected degrees from -90 to 90"},
	"lines-not-utf8":                  {"", "column owner: row 0: got \"\\xff\\xfe\", expected UTF-8"},
	"lines-over-lines":                {"", "row 0: got \"{\\\"time\\\":1431857103,\", expected a JSON object on one line"},
	"lines-owner-object":              {"", "column owner: row 0: got \"{\\\"id\\\":7}\", expected text"},
	"lines-short-trace":               {"", "column trace: row 0: got \"0af7\", expected 32 hexadecimal digits"},
	"lines-status-true":               {"", "column status: row 0: got \"true\", expected a status from 0 to 65535"},
	"lines-time-in-words":             {"", "column time: row 0: got \"now\", expected RFC 3339 or Unix s, ms, us or ns, between 1900 and 2200"},
	"lines-time-of-the-romans":        {"", "column time: row 0: got \"-62135596800\", expected RFC 3339"},
	"lines-without-op":                {"", "column op: row 0: missing, expected read or write"},
	"location-unknown-state":          {"/state: value must be one of 'live', 'moving', 'retired'", "field state: got \"gone\", expected live, moving or retired"},
	"location-version-text":           {"/version: got string, want integer", "cannot unmarshal string into Go struct field Location.version of type uint64"},
	"location-without-site":           {"missing property 'site'", "field site: got \"\", expected 1 to 1024 bytes"},
	"mark-dropped-of-no-partition":    {"", "header Penstock-Dropped: got \"8:1-1;1;0;0\", expected a partition below 8"},
	"mark-too-few-partitions":         {"", "header Penstock-Upto: got \"17,4,0,9,12,3\", expected 8 sequences"},
	"mark-unknown-kind":               {"", "header Penstock-Mark: got \"start\", expected heartbeat, barrier or end"},
	"operator-freeze.placement":       {"/on: got string, want boolean", "cannot unmarshal string into Go struct field Switch.on of type bool"},
	"operator-freeze.plaecment":       {"", "field key: got \"freeze.plaecment\", expected one of a kind: placement, split, servers or coding"},
	"operator-mode.placement":         {"/mode: value must be one of 'observe', 'advise', 'act'", "field mode.placement.mode: got \"on\", expected observe, advise or act"},
	"operator-rollback.placement":     {"", "field rollback.placement.after: got \"\", expected a time"},
	"outcome-failed-but-done":         {"/status: value must be 'failed'", "field failed: got \"1 servers\", expected none but in a failed outcome of kind servers"},
	"outcome-failed-of-split":         {"/kind: value must be 'servers'", "field failed: got \"1 servers\", expected none but in a failed outcome of kind servers"},
	"outcome-failed-twice":            {"/failed: items at 0 and 1 are equal", "field failed[1]: got \"web-4\", expected each server once"},
	"outcome-negative-bytes":          {"/bytes: minimum: got -1, want 0", "field bytes: got \"-1\", expected 0 or more"},
	"outcome-table-without-epoch":     {"missing property 'epoch'", "field epoch: got \"0\", expected the epoch of the table, at least 1"},
	"outcome-unknown-status":          {"/status: value must be one of", "field status: got \"ok\", expected done, failed, refused, expired, advised, already-applied or imported"},
	"outcome-without-owner":           {"missing property 'owner'", "field owner: got \"\", expected 1 to 1024 bytes"},
	"request-negative-bytes":          {"/bytes", "column bytes: row 0: "},
	"request-north-of-the-pole":       {"/lat", "column lat: row 0: "},
	"request-short-trace":             {"/trace", "column trace: row 0: "},
	"request-status-text":             {"/status", "column status: row 0: "},
	"request-time-in-words":           {"/time", "column time: row 0: "},
	"request-unknown-op":              {"/op: value must be one of 'read', 'write'", "column op: row 0: "},
	"request-without-op":              {"missing property 'op'", "column op: row 0: missing"},
	"split-no-sites":                  {"/ratios: minItems: got 0, want 1", "split: field ratios: got \"0 sites\", expected 1 to 257"},
	"split-server-without-scheme":     {"/ratios/0/servers/0: 'cart:8080'", "split: field ratios[0].servers[0]: got \"cart:8080\", expected an absolute URL, http or https, without query"},
	"split-share-over-1":              {"/ratios/0/share: maximum: got 1.5, want 1", "split: field ratios[0].share: got \"1.5\", expected 0 to 1"},
	"split-site-twice":                {"", "split: field ratios[1].site: got \"us-east\", expected each site once"},
	"split-sum":                       {"", "split: field ratios: got \"a sum of 0.75\", expected a sum of 1"},
	"split-without-component":         {"missing property 'component'", "split: field component: got \"\", expected 1 to 1024 bytes"},
	"split-writes-nowhere":            {"", "split: field writes_at: got \"us-north\", expected one of the sites of ratios"},
}

func TestBadMessagesAreRefused(t *testing.T) {
	compiled := compileAll(t)
	seen := map[string]bool{}
	for _, f := range corpus.Files(corpus.Bad) {
		name := f.Kind + "-" + f.Name
		seen[name] = true
		expected, ok := faults[name]
		if !ok || expected.schema == "" && expected.decoder == "" {
			t.Errorf("%s: nothing is expected of it", f.Path())
			continue
		}
		check := func(who string, err error, expected string) {
			t.Helper()
			text := strings.NewReplacer("at '", "", "': ", ": ").Replace(fmt.Sprint(err))
			if (err != nil) != (expected != "") || err != nil && !strings.Contains(text, expected) {
				t.Errorf("%s: %s: got %v\nexpected %s", f.Path(), who, err, expected)
			}
		}
		err, _ := validate(t, compiled, f)
		check("schema", err, expected.schema)
		_, err, _ = decode(f)
		check("decoder", err, expected.decoder)
	}
	for name := range faults {
		if !seen[name] {
			t.Errorf("%s is not in the corpus", name)
		}
	}
}

// What was written before a field or column was added reads as absent, and what
// a later version adds is ignored.
func TestOlderAndNewerVersionsReadAsThisOne(t *testing.T) {
	read := func(folder, kind, name string) any {
		for _, f := range corpus.Files(folder) {
			if f.Kind == kind && f.Name == name {
				m, err, _ := decode(f)
				if err != nil {
					t.Fatalf("%s: %v", f.Path(), err)
				}
				return m
			}
		}
		t.Fatalf("no %s/%s-%s", folder, kind, name)
		return nil
	}
	show := func(v any) string {
		switch m := v.(type) {
		case *event.Requests:
			var b strings.Builder
			for i := range m.Len() {
				fmt.Fprintf(&b, "%+v\n", m.Row(i))
			}
			return b.String()
		case *window.Table:
			return fmt.Sprint(m.Rollup.Name, m.Start, m.Ints, m.Hists, m.Keys[0].Codes, m.Keys[0].Values, m.Keys[1].Codes, m.Keys[1].Values)
		}
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	same := func(a, b any) {
		t.Helper()
		if show(a) != show(b) {
			t.Errorf("got\n%s\nexpected\n%s", show(a), show(b))
		}
	}
	whole := read(corpus.Good, "batch", "plain").(*event.Requests)
	same(read(corpus.Good, "batch", "compressed"), whole)
	same(read(corpus.Newer, "batch", "added-columns"), whole)
	same(read(corpus.Newer, "pane", "added-value"), read(corpus.Good, "pane", "traffic"))
	same(read(corpus.Newer, "command", "added-payload"), read(corpus.Good, "command", "moves"))
	same(read(corpus.Newer, "command", "added-to-coding"), read(corpus.Good, "command", "coding"))
	same(read(corpus.Newer, "decision", "added-field"), read(corpus.Good, "decision", "overhead"))
	same(read(corpus.Newer, "outcome", "added-field"), read(corpus.Good, "outcome", "move"))
	same(read(corpus.Newer, "location", "added-field"), read(corpus.Good, "location", "live"))
	same(read(corpus.Newer, "operator", "mode.placement"), read(corpus.Good, "operator", "mode.placement"))
	same(read(corpus.Newer, "commit", "added-field"), read(corpus.Good, "commit", "whole"))
	same(read(corpus.Newer, "header", "added-header"), read(corpus.Good, "header", "batch"))

	old := read(corpus.Old, "batch", "before-chunks").(*event.Requests)
	if old.Len() != whole.Len() {
		t.Fatalf("%d rows, expected %d", old.Len(), whole.Len())
	}
	for i := range old.Len() {
		q := whole.Row(i)
		q.Overdue, q.Outcome, q.N, q.K = event.NullInt, "", 0, 0
		if got, expected := fmt.Sprintf("%+v", old.Row(i)), fmt.Sprintf("%+v", q); got != expected {
			t.Errorf("row %d: got\n%s\nexpected\n%s", i, got, expected)
		}
	}
	if l := read(corpus.Old, "location", "before-pinned").(*control.Location); l.Pinned || l.Version != 7 {
		t.Errorf("got %+v", l)
	}
	if c := read(corpus.Old, "commit", "before-reach").(*window.Commit); c.Reach != 0 || c.Flush != "f" {
		t.Errorf("got %+v", c)
	}
	if d := read(corpus.Old, "decision", "before-case").(*control.Decision); d.Case != "" || len(d.Reasons) != 2 {
		t.Errorf("got %+v", d)
	}
}
