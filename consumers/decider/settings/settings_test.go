package settings_test

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"penstock/consumers/decider/settings"
	"penstock/schemas/control"
)

var errConfig = errors.New("configuration")

type config struct {
	Rate float64 `json:"rate"`
}

func TestOnlyZeroIsADefault(t *testing.T) {
	zero, below, set := 0, -1, time.Second
	settings.OrElse(&zero, 7)
	settings.OrElse(&below, 7)
	settings.OrElse(&set, time.Hour)
	if zero != 7 || below != -1 || set != time.Second {
		t.Errorf("%d, %d, %s", zero, below, set)
	}
}

func TestFaultsAreAllListed(t *testing.T) {
	f := new(settings.Faults)
	f.Need(true, "fine", 1, "anything")
	if err := f.Err(errConfig); err != nil {
		t.Fatal(err)
	}
	f.Need(false, "rate", 3, "at most 2")
	f.Need(false, "name", "", "a name")
	want := "configuration: rate: got \"3\", expected at most 2\nname: got \"\", expected a name"
	if err := f.Err(errConfig); !errors.Is(err, errConfig) || err.Error() != want {
		t.Errorf("got %v\nexpected %s", err, want)
	}
}

func TestDecodeIsStrict(t *testing.T) {
	if c, err := settings.Decode[config]([]byte(`{"rate":2}`), errConfig); err != nil || c.Rate != 2 {
		t.Errorf("%+v, %v", c, err)
	}
	for _, body := range []string{``, `{"rat":2}`, `{"rate":"2"}`} {
		if _, err := settings.Decode[config]([]byte(body), errConfig); !errors.Is(err, errConfig) {
			t.Errorf("%q: %v", body, err)
		}
	}
}

func TestFrame(t *testing.T) {
	f, err := settings.NewFrame(control.Split, "fast", time.Minute, time.Hour, config{Rate: 2}, errConfig)
	if err != nil {
		t.Fatal(err)
	}
	f.Config()[0] = 'x' // a caller's copy
	if f.Kind() != control.Split || !slices.Equal(f.Groups(), []string{"fast"}) || f.Width() != time.Minute || f.TTL() != time.Hour || string(f.Config()) != `{"rate":2}` {
		t.Errorf("%+v", f)
	}
	if _, err := settings.NewFrame(control.Split, "fast", 1, 1, config{Rate: math.NaN()}, errConfig); !errors.Is(err, errConfig) {
		t.Errorf("what JSON cannot hold: %v", err)
	}
}
