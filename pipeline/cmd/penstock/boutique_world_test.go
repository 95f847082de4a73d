package main

import (
	"encoding/csv"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"penstock/infra/shareddata"
	"penstock/producers/recording"
)

// boutique is OnlineBoutique at two sites, made of the recording of one (traces-nezha).
// At us-east it runs as it was recorded: three minutes, and towards the end of the
// second one the frontend's processor is taken from it. At us-west are its replicas
// in good health: the 35 s of the second minute before the fault, again and again,
// with other trace ids. Between them lie 62 ms, which the policy is told, for no call
// went over.
type boutique struct {
	t           testing.TB
	dir, config string
	spans       int64
	head        []string   // of calls
	calls       [][]string // in the order of time
}

// faultAt is when the frontend's processor is taken, by the recording's own list.
var faultAt = time.Date(2022, 8, 22, 3, 53, 54, 0, time.UTC)

const boutiqueWorld = `
sites:
  - {name: us-east, lat: 37.3719, lon: -79.8164, capacity: 1GB/h}
  - {name: us-west, lat: 37.783, lon: -122.417, capacity: 1GB/h}
split: {links: [{from: us-east, to: us-west, delay: 62ms}]}
components:
`

// boutiqueParts are the parts of OnlineBoutique that call or are called.
var boutiqueParts = []string{
	"frontend", "adservice", "cartservice", "checkoutservice", "currencyservice", "emailservice", "paymentservice",
	"productcatalogservice", "recommendationservice", "shippingservice",
}

// newBoutique writes spans and configuration, and has the spans imported.
func newBoutique(t testing.TB) *boutique {
	t.Helper()
	b := &boutique{t: t, dir: t.TempDir()}
	b.config = filepath.Join(b.dir, "boutique.yaml")
	world := boutiqueWorld
	for _, c := range boutiqueParts {
		world += fmt.Sprintf("  - {name: %s, sites: [us-east, us-west]}\n", c)
	}
	writeFile(t, b.config, world)
	rows := [][]string{{"TraceID", "SpanID", "ParentID", "PodName", "OperationName", "StartTimeUnixNano", "EndTimeUnixNano", "Duration", "cloud.region"}}
	for _, minute := range []string{"03_53", "03_54", "03_55"} {
		for _, row := range boutiqueSpans(t, minute) {
			rows = append(rows, append(row, "us-east"))
		}
	}
	healthy := healthySpans(t)
	for n := range 5 {
		shift := int64(35*n-60) * int64(time.Second)
		for _, row := range healthy {
			row = append(slices.Clone(row), "us-west")
			id := fnv.New128a()
			fmt.Fprint(id, n, row[0])
			row[0] = hex.EncodeToString(id.Sum(nil))
			for _, i := range []int{5, 6} {
				row[i] = strconv.FormatInt(number(t, row[i])+shift, 10)
			}
			rows = append(rows, row)
		}
	}
	b.spans = int64(len(rows) - 1)
	b.imported(b.write("spans.csv", rows))
	return b
}

func number(t testing.TB, text string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// boutiqueSpans are the rows of a minute, without the header.
func boutiqueSpans(t testing.TB, minute string) [][]string {
	t.Helper()
	f, err := recording.OpenPlain(filepath.Join(shareddata.Dir(t, "traces-nezha"), "ob_2022-08-22_"+minute+"_trace.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows[1:]
}

// healthySpans are those of traces that began before the fault.
func healthySpans(t testing.TB) [][]string {
	t.Helper()
	rows := boutiqueSpans(t, "03_54")
	began := map[string]int64{}
	for _, r := range rows {
		if at, known := began[r[0]]; !known || number(t, r[5]) < at {
			began[r[0]] = number(t, r[5])
		}
	}
	return slices.DeleteFunc(rows, func(r []string) bool { return began[r[0]] >= faultAt.UnixNano() })
}

func (b *boutique) write(name string, rows [][]string) string {
	b.t.Helper()
	name = filepath.Join(b.dir, name)
	f, err := os.Create(name)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	if err := csv.NewWriter(f).WriteAll(rows); err != nil {
		b.t.Fatal(err)
	}
	return name
}

// imported makes calls of the spans, each of which has a fate.
func (b *boutique) imported(spans string) {
	b.t.Helper()
	calls := filepath.Join(b.dir, "calls.csv")
	text := must(b.t, "--json", "import", "spans", spans, "-o", calls, "--service", "own", "--entries", "all")
	var got struct {
		Spans   int64
		Account map[string]int64
	}
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &got); err != nil {
		b.t.Fatalf("%s: %v", text, err)
	}
	sum := int64(0)
	for _, n := range got.Account {
		sum += n
	}
	a := got.Account
	if got.Spans != b.spans || sum != b.spans || a["call"]+a["half"]+a["inside"]+a["duplicate"] != sum || a["duplicate"] != 373 {
		b.t.Errorf("%d spans were written: %+v", b.spans, got)
	}
	f, err := os.Open(calls)
	if err != nil {
		b.t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		b.t.Fatal(err)
	}
	b.head, b.calls = rows[0], rows[1:]
}

// column is where a field of a call stands.
func (b *boutique) column(name string) int { return slices.Index(b.head, name) }

// isSlow reports whether a call is one of those that the slow frontend makes.
func (b *boutique) isSlow(call []string) bool {
	at, err := time.Parse(time.RFC3339Nano, call[b.column("time")])
	if err != nil {
		b.t.Fatal(err)
	}
	return call[b.column("from_component")] == "frontend" && call[b.column("from_site")] == "us-east" && !at.Before(faultAt)
}
