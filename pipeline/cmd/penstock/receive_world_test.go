package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"penstock/consumers/panes"
	"penstock/infra/bus"
	"penstock/pipeline/demo/processes"
	"penstock/pipeline/report"
	"penstock/schemas/window"
)

// tracing is a process that holds the bus, and receivers of spans that share traces.
type tracing struct {
	t           testing.TB
	dir, config string
	bus         string
	grpc, http  map[string]string
	server      *server
	receivers   map[string]*server
	clients     int
}

// newTracing starts the process that holds the bus; receivers are started by receive.
func newTracing(t testing.TB, window time.Duration, names ...string) *tracing {
	t.Helper()
	at, err := processes.Addresses(t.Context(), "127.0.0.1", 1+2*len(names), rand.New(rand.NewPCG(rand.Uint64(), rand.Uint64())))
	if err != nil {
		t.Fatal(err)
	}
	w := &tracing{t: t, dir: t.TempDir(), bus: at[0], grpc: map[string]string{}, http: map[string]string{}, receivers: map[string]*server{}}
	var peers []string
	for i, n := range names {
		w.grpc[n], w.http[n] = at[1+2*i], at[2+2*i]
		peers = append(peers, w.grpc[n])
	}
	w.config = filepath.Join(w.dir, "penstock.yaml")
	writeFile(t, w.config, fmt.Sprintf(`
sites:
  - {name: us-east, lat: 37.3719, lon: -79.8164, capacity: 1TB/h, store: "dir:%s"}
  - {name: us-west, lat: 37.783, lon: -122.417, capacity: 1TB/h, store: "dir:%s"}
components:
  - {name: web, sites: [us-east, us-west]}
  - {name: cart, sites: [us-east, us-west]}
bus: {partitions: 2, sync: interval, flush: 100ms, idle_timeout: 2s}
spans: {window: %s, peers: ["%s"], sites: {us-west-2: us-west}}
privacy: {user_key: "only for this test"}
telemetry: {listen: "127.0.0.1:0"}
`, filepath.Join(w.dir, "east"), filepath.Join(w.dir, "west"), window, strings.Join(peers, `", "`)))
	w.server = serve(t, "--config", w.config, "--state", filepath.Join(w.dir, "state"), "--listen", w.bus, "--name", "core")
	return w
}

var receiving = regexp.MustCompile(`(?m)^receiver of spans at \S+ \(gRPC\) and http://\S+; metrics and health at (\S+)\n`)

// receive starts receivers and waits until they are ready.
func (w *tracing) receive(names ...string) {
	w.t.Helper()
	for _, n := range names {
		w.receivers[n] = start(w.t, "receive", "--config", w.config, "--nats", "nats://"+w.bus, "--name", n,
			"--grpc", w.grpc[n], "--http", w.http[n], "--state", filepath.Join(w.dir, n))
	}
	for _, n := range names {
		s := w.receivers[n]
		eventually(w.t, n+" to listen", func() bool {
			m := receiving.FindStringSubmatch(s.out.String())
			if m != nil {
				s.telemetry = m[1]
			}
			return m != nil
		})
		s.awaitReady(true)
	}
}

// calls is how many calls of receivers are on the bus.
func (w *tracing) calls(names ...string) (n int) {
	w.t.Helper()
	for _, name := range names {
		n += w.receivers[name].published("sent")
	}
	return n
}

// sender is a process of a component at a site, traced by OpenTelemetry's SDK.
type sender struct {
	*sdktrace.TracerProvider
	trace.Tracer
}

// sender starts one that exports to a receiver.
func (w *tracing) sender(component, region, receiver string) *sender {
	w.t.Helper()
	return w.senderEvery(200*time.Millisecond, component, region, receiver)
}

// senderEvery starts one that exports that often.
func (w *tracing) senderEvery(interval time.Duration, component, region, receiver string) *sender {
	w.t.Helper()
	exporter, err := otlptracegrpc.New(w.t.Context(), otlptracegrpc.WithEndpoint(w.grpc[receiver]), otlptracegrpc.WithInsecure(), otlptracegrpc.WithCompressor("gzip"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.clients++
	p := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(exporter, sdktrace.WithBatchTimeout(interval)),
		sdktrace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", component), attribute.String("cloud.region", region), attribute.String("service.instance.id", fmt.Sprint("process-", w.clients)),
		)),
	)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = p.Shutdown(ctx) // Its receiver may be gone.
	})
	return &sender{p, p.Tracer("penstock")}
}

// flushSpans sends what has ended.
func flushSpans(t testing.TB, senders ...*sender) {
	t.Helper()
	for _, s := range senders {
		if err := s.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// ahead is how far the clocks of senders are ahead: less than a machine that has other
// things to do makes their spans late.
const ahead = 500 * time.Millisecond

// Of each request 10 ms are its own, and of each call 5 ms are the callee's.
const (
	ownTime  = 10 * time.Millisecond
	callTime = 5 * time.Millisecond
)

// traced is a request to from that asks for something else, which takes network on
// the way. It returns the caller's half, and when the callee began.
func traced(from *sender, network time.Duration) (asked trace.SpanContext, began time.Time) {
	end := time.Now().Add(ahead)
	took := callTime + network
	ctx, served := from.Start(context.Background(), "GET /", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(end.Add(-ownTime-took)))
	_, asking := from.Start(ctx, "ask", trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(end.Add(-ownTime/2-took)))
	asking.End(trace.WithTimestamp(end.Add(-ownTime / 2)))
	served.End(trace.WithTimestamp(end))
	return asking.SpanContext(), end.Add(-ownTime/2 - took + network/2)
}

// tracedCall is a request that asks another process.
func tracedCall(from, to *sender, network time.Duration) {
	asked, began := traced(from, network)
	_, did := to.Start(trace.ContextWithRemoteSpanContext(context.Background(), asked), "answer", trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(began))
	did.End(trace.WithTimestamp(began.Add(callTime)))
}

// post sends the callee's half as JSON over HTTP, as a browser or a script would.
func (w *tracing) post(receiver, component, region string, asked trace.SpanContext, began time.Time) {
	w.t.Helper()
	body := fmt.Sprintf(`{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":%q}},{"key":"cloud.region","value":{"stringValue":%q}}]},
		"scopeSpans":[{"spans":[{"traceId":%q,"spanId":"%016x","parentSpanId":%q,"name":"answer","kind":2,"startTimeUnixNano":"%d","endTimeUnixNano":"%d"}]}]}]}`,
		component, region, asked.TraceID(), rand.Uint64()|1, asked.SpanID(), began.UnixNano(), began.Add(callTime).UnixNano())
	res, err := http.Post("http://"+w.http[receiver]+"/v1/traces", "application/json", bytes.NewBufferString(body))
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	var answer map[string]any
	if err := json.NewDecoder(res.Body).Decode(&answer); err != nil || res.StatusCode != http.StatusOK || len(answer) > 0 {
		w.t.Fatalf("%s: %v %v", res.Status, answer, err)
	}
}

// tracedLink is an edge of the windows of delays.
type tracedLink struct{ from, fromSite, to, toSite string }

// linkTotal is what the windows hold of a link.
type linkTotal struct{ requests, errors, service, network int64 }

// delayLinks reads the windows of delays, all of which must be whole.
func delayLinks(t testing.TB, c *bus.Client) map[tracedLink]linkTotal {
	t.Helper()
	out := map[tracedLink]linkTotal{}
	_, err := panes.Each(t.Context(), c, panes.Options{Group: window.Fast}, panes.Visitor{Window: func(w *panes.Window) error {
		if len(w.Incomplete) > 0 {
			t.Errorf("window %v: incomplete %v", w.Span(), w.Incomplete)
		}
		d := w.Tables[window.Delay.Name]
		if d == nil {
			return nil
		}
		for row := range d.Len() {
			var key [4]string
			for k := range key {
				key[k] = d.Keys[k].At(row)
			}
			l := out[tracedLink{key[0], key[1], key[2], key[3]}]
			l.requests += d.Ints[0][row]
			l.errors += d.Ints[1][row]
			l.service += d.Ints[2][row]
			l.network += d.Ints[4][row]
			out[tracedLink{key[0], key[1], key[2], key[3]}] = l
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// passed waits until windows no longer wait for anybody at an instant.
func (w *tracing) passed(c *bus.Client, at time.Time) {
	w.t.Helper()
	eventually(w.t, "the windows to go on", func() bool {
		a, err := report.NewAudit(w.t.Context(), c)
		return err == nil && !slices.ContainsFunc(a.Groups, func(g report.GroupAudit) bool {
			return g.Group == window.Fast && g.Watermark.Before(at)
		})
	})
}

// account is that of the windows of delays, once all that is on the bus is in them.
func (w *tracing) account(c *bus.Client) (total window.Account) {
	w.t.Helper()
	eventually(w.t, "everything to be in windows", func() bool {
		a, err := report.NewAudit(w.t.Context(), c)
		if err != nil {
			return false
		}
		behind := false
		for _, g := range a.Groups {
			behind = behind || g.Behind > 0
			if g.Group == window.Fast {
				total = g.Total
			}
		}
		return !behind
	})
	return total
}

// audited looks at what the process that held the bus has left.
func (w *tracing) audited() {
	w.t.Helper()
	if out := must(w.t, "audit", "--state", filepath.Join(w.dir, "state")); !strings.Contains(out, "every event is accounted for") {
		w.t.Errorf("audit:\n%s", out)
	}
}
