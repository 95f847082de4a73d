package switching

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
)

// Of a forecast.
const (
	// mostBins is into how many parts a day is cut at most.
	mostBins = 288
	// days make a week.
	days = 7
	// dayPart and weekPart are the weight of a new day in a part of a day, and of a new week
	// in a part of a week.
	dayPart, weekPart = 0.3, 0.5
	// ofWeek is the weight of the week's part beside the day's, once there is one.
	ofWeek = 0.7
	// errorPart is the weight of a new error in the mean of errors: that of half a day, so
	// that a calm night does not let a bad day be forgotten.
	errorPart = 2.0 / mostBins
	// goodEnough is the error, relative to the load, up to which a forecast counts even if
	// it is no better than none.
	goodEnough = 0.1
	// mostAhead is of how many parts a forecast is kept until it can be judged.
	mostAhead = 8
	// levelPart is the weight of the last part of a day in the level of today.
	levelPart = 0.3
)

// season is a forecast of the load by the time of day and week: mean loads of each part of
// a day and of a week, times how today compares with them. Its zero value forecasts
// nothing.
type season struct {
	width int64 // of a part, ns
	day   []float64
	week  []float64 // both −1 where not known yet

	part  int64   // the part at hand, by its number since 0; −1: none
	sum   float64 // of the loads in it
	count int64

	level float64 // today over what is usual
	// ahead are the forecasts and loads of the last parts, oldest first, that errors are told
	// by once their part has come.
	ahead []foretold
	// means of what forecasts, and the load of then taken for a forecast, were wrong by, and
	// of the load.
	wrong, wrongOfNone, loads float64

	digest [sha256.Size]byte // of day and week
	dirty  bool
}

// foretold is what was forecast for a part, and the load when it was.
type foretold struct {
	part           int64
	forecast, load float64
}

func newSeason(o *Options) season {
	s := season{part: -1, level: 1}
	if !o.Forecast {
		return s
	}
	bins := min(mostBins, int64(o.Season/o.Period))
	s.width = int64(o.Season) / bins
	s.day, s.week = unknown(bins), unknown(days*bins)
	s.dirty = true
	return s
}

func unknown(n int64) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = -1
	}
	return out
}

// add takes the load of a period in that ended at that time.
func (s *season) add(at int64, load float64) {
	part := (at - 1) / s.width
	if part != s.part {
		if s.count > 0 {
			s.close(s.sum / float64(s.count))
		}
		s.part, s.sum, s.count = part, 0, 0
	}
	s.sum += load
	s.count++
}

// close ends the part at hand, whose mean load that was.
func (s *season) close(load float64) {
	for len(s.ahead) > 0 && s.ahead[0].part <= s.part {
		if f := s.ahead[0]; f.part == s.part {
			s.wrong += float64(errorPart * (math.Abs(f.forecast-load) - s.wrong))
			s.wrongOfNone += float64(errorPart * (math.Abs(f.load-load) - s.wrongOfNone))
			s.loads += float64(errorPart * (load - s.loads))
		}
		s.ahead = s.ahead[1:]
	}
	if usual := s.usual(s.part); usual > 0 {
		ratio := min(2, max(0.5, load/usual))
		s.level += float64(levelPart * (ratio - s.level))
	}
	s.take(s.day, dayPart, load)
	s.take(s.week, weekPart, load)
	s.dirty = true
	// Errors are told over as many parts as the farthest that is looked ahead in practice: a
	// start, and the cooldown after it.
	next := s.part + 2
	if usual := s.usual(next); usual >= 0 && len(s.ahead) < mostAhead {
		s.ahead = append(s.ahead, foretold{part: next, forecast: usual * s.level, load: load})
	}
}

// take brings the mean of the part at hand on.
func (s *season) take(of []float64, part, load float64) {
	v := &of[s.at(of, s.part)]
	if *v < 0 {
		*v = load
		return
	}
	*v += float64(part * (load - *v))
}

func (s *season) at(of []float64, part int64) int {
	n := int64(len(of))
	return int(((part % n) + n) % n)
}

// usual is the load that a part mostly has, −1 if it is not known.
func (s *season) usual(part int64) float64 {
	day, week := s.day[s.at(s.day, part)], s.week[s.at(s.week, part)]
	switch {
	case week >= 0 && day >= 0:
		return day + float64(ofWeek*(week-day))
	case week >= 0:
		return week
	}
	return day
}

// expect returns the greatest load that is forecast between the part at hand and that many
// ns from now, the error of such forecasts relative to the load, and whether they count: a
// whole day is known, and they are good, or better than to take the load of now.
func (s *season) expect(ahead int64) (most, relative float64, counts bool) {
	if s.width == 0 || s.part < 0 {
		return 0, 0, false
	}
	last := s.part + (ahead+s.width-1)/s.width
	known := true
	for p := s.part; p <= min(last, s.part+int64(len(s.week))); p++ {
		usual := s.usual(p)
		known = known && usual >= 0
		most = max(most, usual*s.level)
	}
	if s.loads > 0 {
		relative = s.wrong / s.loads
	}
	return most, relative, known && s.loads > 0 && (s.wrong <= s.wrongOfNone || relative <= goodEnough)
}

// sum256 is the digest of the means, which change once a part; zero if there are none,
// whether they were never made or read back as nothing.
func (s *season) sum256() [sha256.Size]byte {
	if s.dirty && len(s.day)+len(s.week) > 0 {
		h := sha256.New()
		var b [8]byte
		for _, of := range [...][]float64{s.day, s.week} {
			for _, v := range of {
				_, _ = h.Write(binary.LittleEndian.AppendUint64(b[:0], math.Float64bits(v))) // A hash does not fail.
			}
		}
		h.Sum(s.digest[:0])
		s.dirty = false
	}
	return s.digest
}
