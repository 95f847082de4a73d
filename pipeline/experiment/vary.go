package experiment

import "strconv"

// change plays our policies again with one thing changed at a time.
func (d *day) change(s *stage, baseline *Run, name string, o *Options) error {
	play := func(what, value string, standard bool, change func(*stage)) error {
		for _, policy := range []string{TMatch, Optimal} {
			other := *s
			other.keepHours = false
			// The objective is not asked for: weights are of the standard alpha.
			other.play.Objective = nil
			change(&other)
			run, err := other.policy(policy, false)
			if err != nil {
				return err
			}
			run.Seed, run.Model, run.Case = d.seed, d.model.Name, name
			run.against(baseline)
			d.varied = append(d.varied, Varied{What: what, Value: value, Standard: standard, Run: run})
		}
		return nil
	}
	v := &o.Params.Sensitivity
	total := o.Params.Alpha + o.Params.Beta
	for _, a := range ends(v.Alpha, o.Quick) {
		err := play("alpha : beta", number(a)+" : "+number(total-a), a == o.Params.Alpha, func(s *stage) {
			s.objective.Alpha, s.objective.Beta = a, total-a
		})
		if err != nil {
			return err
		}
	}
	for _, h := range ends(v.Headroom, o.Quick) {
		if err := play("headroom", number(h), h == 0, func(s *stage) { s.objective.Headroom = h }); err != nil {
			return err
		}
	}
	for _, h := range ends(v.Hours, o.Quick) {
		if err := play("unit of time", strconv.Itoa(h)+" h", h == 1, func(s *stage) { s.hours = h }); err != nil {
			return err
		}
	}
	return nil
}

// number prints a share without the noise of binary fractions.
func number(v float64) string { return strconv.FormatFloat(v, 'g', 3, 64) }

// ends are the first and the last of a list, where only these are wanted.
func ends[T any](list []T, only bool) []T {
	if !only || len(list) < 3 {
		return list
	}
	return []T{list[0], list[len(list)-1]}
}
