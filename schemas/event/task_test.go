package event_test

import (
	"slices"
	"testing"

	"penstock/schemas/event"
)

func TestTasks(t *testing.T) {
	var d event.Dict
	for _, outcome := range []string{"", "success", "done", "cancelled", "done", "failed", "Done"} {
		d.Append(outcome)
	}
	if got, some := event.Tasks(nil, &d); !some || !slices.Equal(got, []bool{false, true, true, true, false}) {
		t.Errorf("%v of %v, some %v", got, d.Values, some)
	}
	d.Reset()
	d.Append("success")
	if got, some := event.Tasks(nil, &d); some || len(got) != 1 {
		t.Errorf("%v, some %v", got, some)
	}
}
