package loads

import (
	"math"
	"math/rand/v2"
	"time"
)

// Page is a type of pages.
type Page struct {
	Name    string        `yaml:"name"`
	Share   float64       `yaml:"share"`   // of requests
	KB      float64       `yaml:"kb"`      // mean size, 1,000 bytes
	Sigma   float64       `yaml:"sigma"`   // of the logarithm of the size
	Dynamic float64       `yaml:"dynamic"` // share that needs the database
	Limit   time.Duration `yaml:"t_max"`   // response time without a penalty
	Penalty float64       `yaml:"penalty"` // for each second beyond it
}

// Station is the mean time of a request at a nominal station.
type Station struct {
	MS    float64 `yaml:"ms"`
	PerKB float64 `yaml:"per_kb"` // ms
}

func (s Station) seconds(kb float64) float64 { return (s.MS + float64(s.PerKB*kb)) / 1000 }

// Stations are those that a request passes.
type Stations struct {
	Before   Station `yaml:"before"`   // the CPU before the disk
	Disk     Station `yaml:"disk"`     //
	Behind   Station `yaml:"behind"`   // the CPU behind it
	Database Station `yaml:"database"` // of dynamic requests
	Sigma    float64 `yaml:"sigma"`    // of the logarithm of a factor of mean 1
}

// Request is one request; times are those at a nominal server.
type Request struct {
	At      int64 // ns from the run's start, at the client
	Page    uint8
	Dynamic bool
	KB      float64
	// Before, Disk, Behind and Database are ns at the stations, in order. Database is
	// 0 of a static one.
	Before, Disk, Behind, Database int64
}

// CPU is the time at the CPU, ns.
func (r *Request) CPU() int64 { return r.Before + r.Behind }

// Bottleneck is the mean time, s, that a request of the pages takes at the station of a
// server that it takes longest at: its inverse is what a nominal server carries.
func (s *Stations) Bottleneck(pages []Page) float64 {
	cpu, disk := 0.0, 0.0
	for _, p := range pages {
		cpu += float64(p.Share * (s.Before.seconds(p.KB) + s.Behind.seconds(p.KB)))
		disk += float64(p.Share * s.Disk.seconds(p.KB))
	}
	return max(cpu, disk)
}

// MeanKB is the mean size of a request of the pages.
func MeanKB(pages []Page) float64 {
	sum := 0.0
	for _, p := range pages {
		sum += float64(p.Share * p.KB)
	}
	return sum
}

// factor is a log-normal number of mean 1.
func factor(draw *rand.Rand, sigma float64) float64 {
	return math.Exp(float64(sigma*draw.NormFloat64()) - float64(sigma*sigma)/2)
}

// times draws how long a request takes.
func (s *Stations) times(r *Request, draw *rand.Rand) {
	of := func(x Station) int64 {
		return max(1, int64(math.Round(1e9*x.seconds(r.KB)*factor(draw, s.Sigma))))
	}
	r.Before, r.Disk, r.Behind = of(s.Before), of(s.Disk), of(s.Behind)
	// Drawn of every request, so that one that is dynamic changes none after it.
	if d := of(s.Database); r.Dynamic {
		r.Database = d
	}
}
