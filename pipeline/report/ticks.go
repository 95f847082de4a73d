package report

import (
	"math"
	"strconv"
	"time"

	"gonum.org/v1/plot"
)

// timeTicks marks round times: whole hours, days or weeks, at most ten.
func timeTicks(least, most float64) []plot.Tick {
	const hour = 3600
	step, format := int64(hour), "15:04"
	for _, s := range []int64{hour, 3 * hour, 6 * hour, 12 * hour, 24 * hour, 7 * 24 * hour, 28 * 24 * hour, 84 * 24 * hour, 364 * 24 * hour} {
		step = s
		if (most-least)/float64(s) <= 8 {
			break
		}
	}
	if step >= 24*hour {
		format = "2006-01-02"
	}
	var out []plot.Tick
	for t := int64(least) / step * step; float64(t) <= most; t += step {
		if float64(t) < least {
			continue
		}
		at := time.Unix(t, 0).UTC()
		label := at.Format(format)
		if format == "15:04" && (at.Hour() == 0 || len(out) == 0) {
			label = at.Format("Jan 2 15:04")
		}
		out = append(out, plot.Tick{Value: float64(t), Label: label})
	}
	return out
}

// roundTicks marks four to eight round numbers.
func roundTicks(least, most float64) []plot.Tick {
	step := math.Pow(10, math.Floor(math.Log10((most-least)/4)))
	for _, f := range []float64{5, 2} {
		if (most-least)/(step*f) >= 4 {
			step *= f
			break
		}
	}
	digits := max(0, int(-math.Floor(math.Log10(step))))
	var out []plot.Tick
	for i := math.Ceil(least / step); i*step <= most; i++ {
		out = append(out, plot.Tick{Value: i * step, Label: strconv.FormatFloat(i*step, 'f', digits, 64)})
	}
	return out
}
