package topology

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"penstock/consumers/executor/coder/s3front"
	"penstock/consumers/executor/coder/tasklog"
	"penstock/infra/telemetry"
	"penstock/schemas/event"
)

// rows keeps what a log publishes.
type rows []event.Request

func (r *rows) Publish(q *event.Request) { *r = append(*r, *q) }
func (*rows) Gauge(*event.Gauge)         {}

// Every request of a client is counted, refusals by their name; those that read or wrote
// an object are events too, unless the client was in the wrong.
func TestRequestsOfACoder(t *testing.T) {
	var published rows
	log, err := tasklog.New(tasklog.Options{Coder: "objects", Site: "us-east", Publisher: &published})
	if err != nil {
		t.Fatal(err)
	}
	m, err := newRequestMeter(telemetry.NewRegistry(), "objects", log)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []s3front.Request{
		{Operation: "GetObject", Status: 200, Sent: 300, Took: time.Second},
		{Operation: "PutObject", Status: 200, Received: 500, Took: time.Second},
		{Operation: "GetObject", Status: 503, Code: "SlowDown", Sent: 100},
		{Operation: "GetObject", Status: 404, Code: "NoSuchKey", Sent: 100},
		{Operation: "ListObjectsV2", Status: 200, Sent: 50},
		{Operation: "BREW-7", Status: 405, Code: "MethodNotAllowed"},
	} {
		m.observe(r)
	}
	for _, c := range []struct {
		operation, status, code string
	}{{"GetObject", "200", ""}, {"GetObject", "503", "SlowDown"}, {"other", "405", "MethodNotAllowed"}} {
		if n := testutil.ToFloat64(m.requests.WithLabelValues(c.operation, c.status, c.code)); n != 1 {
			t.Errorf("%v: counted %v times", c, n)
		}
	}
	if n := testutil.ToFloat64(m.bytes.WithLabelValues("sent")); n != 550 {
		t.Errorf("%v bytes were sent", n)
	}
	if len(published) != 3 || published[0].Op != event.Read || published[1].Op != event.Write || published[1].Bytes != 500 || published[2].Status != 503 {
		t.Errorf("published %+v", published)
	}
}
