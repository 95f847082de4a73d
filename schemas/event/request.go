package event

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// Names of the schemas that travel on EVENTS, as in the header
// Penstock-Schema. The number rises only when a reader of the older one could
// misread the newer one.
const (
	RequestSchema = "request/1"
	GaugeSchema   = "gauge/1"
	MarkSchema    = "mark/1"
)

const (
	// NullInt is the absent value of a nullable integer column.
	NullInt = math.MinInt64
	// NullStatus is the absent value of Request.Status; 0 is "no status",
	// which counts as an error, and is something else.
	NullStatus = -1
	// MaxID is the greatest length of an id (user, owner, component, site,
	// server, …) in bytes. A longer one could make a subject that closes the
	// connection for good (DESIGN §3).
	MaxID = 1024
	// MaxRows is the most rows that one batch may hold.
	MaxRows = 8192
	// MaxBytes is the size at which a batch is cut, in estimated bytes of its
	// columns (Requests.Size).
	MaxBytes = 512 << 10
)

const (
	// MaxRequestBytes is the most that Request.Bytes may be: 128 GiB. The sum
	// over 4096 full batches of such rows still is an int64, so that one absurd
	// row cannot make an account wrap around.
	MaxRequestBytes = 1 << 37
	// MaxDelay bounds Wait, Service, Network and Overdue either way, in µs: 100
	// years. A clock that is off makes a delay negative, which is for the
	// aggregator to flag; Arrival stays far from the ends of an int64.
	MaxDelay = 100 * 366 * 86_400 * 1_000_000
)

// Timing says how a row stands to its run's horizon (DESIGN §3, late and
// future). The producer alone sees the input's order, so it decides.
type Timing uint8

// The three timings, as in the column mark.
const (
	InTime Timing = iota
	Late
	Future
)

// Op is what a request does.
type Op uint8

// The operations. The zero value is a read.
const (
	Read Op = iota
	Write
)

// String returns "read" or "write".
func (o Op) String() string {
	if o == Write {
		return "write"
	}
	return "read"
}

// Request is one request as an entry point saw it (schema request/1). The
// zero value is not a valid request: call [NewRequest] for one whose optional
// fields are all absent.
type Request struct {
	// Time is when the entry point had finished with the request, in µs since
	// 1970 UTC. Arrival = Time − Wait − Service − Network.
	Time int64
	// Mark says whether the row was in time in its input.
	Mark Timing
	Op   Op
	// N and K are chunks asked for and needed; 0 is absent.
	N, K uint8
	// Status is the HTTP status, 0 for none, NullStatus for unknown.
	Status int32
	// Lat and Lon are where the user is, in degrees; NaN is unknown.
	Lat, Lon float32
	// Bytes is the payload both ways.
	Bytes int64
	// Wait, Service and Network are microseconds: queued at the callee, being
	// processed there, and the round trip less both; NullInt is unknown.
	Wait, Service, Network int64
	// Overdue is the response time beyond its limit in µs, 0 if in time,
	// NullInt where there is no limit.
	Overdue int64
	// Trace is the W3C trace id, all zero for none.
	Trace [16]byte
	// ID is the source's own id of the request.
	ID string
	// User asked; Owner is whose data was asked for.
	User, Owner string
	// FromComponent at FromSite called ToComponent at ToSite, on ToServer. An
	// empty FromSite is outside.
	FromComponent, FromSite       string
	ToComponent, ToSite, ToServer string
	// Class is static, dynamic, bad-request, an endpoint or an object class.
	Class string
	// Outcome of a chunk task: done, cancelled or failed. See IsTask.
	Outcome string
}

// NewRequest returns a request at time (µs) whose optional fields are absent.
func NewRequest(time int64) Request {
	nan := float32(math.NaN())
	return Request{
		Time: time, Status: NullStatus, Lat: nan, Lon: nan,
		Wait: NullInt, Service: NullInt, Network: NullInt, Overdue: NullInt,
	}
}

// HasPlace reports whether the user's position is known.
func (r *Request) HasPlace() bool { return r.Lat == r.Lat && r.Lon == r.Lon }

// IsError reports whether the request failed: see [IsErrorStatus].
func (r *Request) IsError() bool { return IsErrorStatus(r.Status) }

// IsErrorStatus reports whether a status says that a request failed: none at all (0),
// or 5xx, but 501 and 505. Those answer a method or a version of HTTP that is not
// there, which anybody can ask for: a service that is well says so, too. An unknown
// status is not an error.
func IsErrorStatus(status int32) bool {
	return status == 0 || status >= 500 && status != 501 && status != 505
}

// FieldError names the field of a row that cannot be used and what was
// expected there. It wraps ErrInvalid.
type FieldError struct {
	Field    string
	Value    string
	Expected string
}

func (e *FieldError) Error() string {
	return fmt.Sprintf("field %s: got %.60q, expected %s", e.Field, e.Value, e.Expected)
}

func (e *FieldError) Unwrap() error { return ErrInvalid }

// Check returns a *FieldError if the row may not enter a batch: an id longer
// than MaxID, text that is not UTF-8, a position outside the globe, a size that
// is negative or beyond MaxRequestBytes, a delay beyond MaxDelay, a status, mark
// or op that is none, or a time that is not after 1900 and before 2200. Decoders
// have the same limits: what Check lets pass is decoded.
func (r *Request) Check() error {
	if r.Time < MinTime || r.Time > MaxTime {
		return &FieldError{"time", fmt.Sprint(r.Time), timeExpected}
	}
	if r.Mark > Future {
		return &FieldError{"mark", fmt.Sprint(uint8(r.Mark)), markExpected}
	}
	if r.Op > Write {
		return &FieldError{"op", fmt.Sprint(uint8(r.Op)), "read or write"}
	}
	if r.Bytes < 0 || r.Bytes > MaxRequestBytes {
		return &FieldError{"bytes", fmt.Sprint(r.Bytes), bytesExpected}
	}
	if r.Lat < -90 || r.Lat > 90 {
		return &FieldError{"lat", fmt.Sprint(r.Lat), "degrees from -90 to 90"}
	}
	if r.Lon < -180 || r.Lon > 180 {
		return &FieldError{"lon", fmt.Sprint(r.Lon), "degrees from -180 to 180"}
	}
	if (r.Lat != r.Lat) != (r.Lon != r.Lon) {
		return &FieldError{"lat", fmt.Sprint(r.Lat), "both lat and lon, or neither"}
	}
	if r.Status < NullStatus || r.Status > math.MaxUint16 {
		return &FieldError{"status", fmt.Sprint(r.Status), "0 to 65535"}
	}
	for i, v := range [...]int64{r.Wait, r.Service, r.Network, r.Overdue} {
		if !IsDelay(v) {
			return &FieldError{delayFields[i], fmt.Sprint(v), delayExpected}
		}
	}
	return r.checkTexts()
}

// IsDelay reports whether a delay (µs) is within MaxDelay or NullInt.
func IsDelay(us int64) bool { return us >= -MaxDelay && us <= MaxDelay || us == NullInt }

func (r *Request) checkTexts() error {
	for i, s := range [...]string{
		r.ID, r.User, r.Owner, r.FromComponent, r.FromSite,
		r.ToComponent, r.ToSite, r.ToServer, r.Class, r.Outcome,
	} {
		if len(s) > MaxID {
			return &FieldError{textFields[i], s, fmt.Sprintf("at most %d bytes (got %d)", MaxID, len(s))}
		}
		if !utf8.ValidString(s) {
			return &FieldError{textFields[i], s, "UTF-8"}
		}
	}
	return nil
}

// MinTime and MaxTime bound the times (µs) of rows and windows.
const (
	MinTime = -2_208_988_800_000_000 // 1900-01-01
	MaxTime = 7_258_118_400_000_000  // 2200-01-01
)

// What errors say of values that are out of range, in rows and in columns.
const (
	timeExpected  = "a time between 1900 and 2200 in µs"
	markExpected  = "0, 1 or 2"
	bytesExpected = "0 to 137438953472"
	delayExpected = "microseconds, at most 100 years either way"
)

var delayFields = [...]string{"wait_us", "service_us", "network_us", "overdue_us"}

var textFields = [...]string{
	"id", "user", "owner", "from_component", "from_site",
	"to_component", "to_site", "to_server", "class", "outcome",
}
