package router

type splitRow struct {
	FromSite string
	To       string
	Ratios   []splitRatio
}

type splitRatio struct {
	Site  string
	Share float64
}
