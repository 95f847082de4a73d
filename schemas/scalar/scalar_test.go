package scalar

import (
	"fmt"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTimes(t *testing.T) {
	const at = 1_431_857_103_000_000
	for text, want := range map[string]int64{
		"1431857103": at, "1431857103000": at, "1431857103000000": at, "1431857103000000000": at,
		"1431857103.5": at + 500_000, "1431857103.0000019": at + 1, "1431857103000.25": at + 250, "1431857103000000.9": at, "1.": 1_000_000, ".5": 500_000, "+1": 1_000_000,
		"1.431857103e9": at, "0": 0, "-1": -1_000_000, "-0.25": -250_000, "-1.0000001": -1_000_001, "99999999999": 99_999_999_999_000_000,
		"100000000000": 100_000_000_000_000, "-1431857103000": -at,
		"2015-05-17T10:05:03Z": at, "2015-05-17t10:05:03z": at, "2015-05-17 10:05:03.000001Z": at + 1, "2015-05-17T12:05:03.9999999+02:00": at + 999_999,
	} {
		if got, ok := Time([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %d, %v, expected %d", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"", "-", ".", "1e", "0x10", "1_000", "NaN", "inf", "--1", "2015-05-17", "2015-05-17T10:05:03", "2015-13-17T10:05:03Z",
		"2015-05-17T10:05:03.123456789123456789123456789Z", "99999999999999999999", "1e300", "10:05", "1431857103 ", "1,5",
	} {
		if got, ok := Time([]byte(text)); ok {
			t.Errorf("%q: got %d, expected none", text, got)
		}
	}
}

func TestTimesAgreeWithRationals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		us := rapid.Int64Range(-2_000_000_000_000_000, 7_000_000_000_000_000).Draw(t, "us")
		sign, abs := "", us
		if us < 0 {
			sign, abs = "-", -us
		}
		text := fmt.Sprintf("%s%d.%06d", sign, abs/1_000_000, abs%1_000_000)
		if got, ok := Time([]byte(text)); !ok || got != us {
			t.Fatalf("%s: got %d, %v", text, got, ok)
		}
	})
}

func TestNumbers(t *testing.T) {
	for text, want := range map[string]int64{"5": 5, "5.0": 5, "5.000": 5, "5e0": 5, "50e-1": 5, "-3": -3, "-3.0": -3, "9223372036854775807": 1<<63 - 1, "1E3": 1000} {
		if got, ok := Int([]byte(text)); !ok || got != want {
			t.Errorf("%s: got %d, %v, expected %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"5.5", "5.0000000000001", "9223372036854775808", "1e19", "0x5", "5_0", "five", " 5", "1e-1", "-0.5"} {
		if got, ok := Int([]byte(text)); ok {
			t.Errorf("%q: got %d, expected none", text, got)
		}
	}
}

func TestMissing(t *testing.T) {
	for text, want := range map[string]bool{"": true, "-": true, "null": true, "0": false, "--": false, "Null": false} {
		if got := IsMissing([]byte(text)); got != want {
			t.Errorf("%q: missing %v", text, got)
		}
	}
}
