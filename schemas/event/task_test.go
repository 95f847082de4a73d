package event_test

import (
	"fmt"
	"testing"

	"penstock/schemas/event"
)

func TestTasks(t *testing.T) {
	var d event.Dict
	for _, outcome := range []string{"", "success", "done", "cancelled", "done", "failed", "Done"} {
		d.Append(outcome)
	}
	if got, some := event.Tasks(nil, &d); !some || fmt.Sprint(d.Values, got) != "[success done cancelled failed Done] [false true true true false]" {
		t.Errorf("%v of %v, some %v", got, d.Values, some)
	}
	d.Reset()
	d.Append("success")
	if got, some := event.Tasks(nil, &d); some || len(got) != 1 {
		t.Errorf("%v, some %v", got, some)
	}
}
