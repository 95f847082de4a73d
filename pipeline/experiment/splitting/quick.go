package splitting

// quickRandom are the faults of the random application in a quick run.
var quickRandom = []string{"b", "e"}

// quick leaves out what takes long: natural runs are as short as the others, and
// the random application has few faults.
func (p *Params) quick() {
	p.Time.Natural = min(p.Time.Natural, p.Time.Length)
	p.Random.Faults = quickRandom
}
