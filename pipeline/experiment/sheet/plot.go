package sheet

import (
	"bytes"
	"encoding/base64"
	"html/template"
	"image/color"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

// Picture is one plot, embedded in the page.
type Picture struct {
	Title string
	URL   template.URL
}

// Palette are colours that stay apart for readers with any kind of colour vision
// (Okabe and Ito).
var Palette = []color.RGBA{
	{0, 114, 178, 255}, {230, 159, 0, 255}, {0, 158, 115, 255}, {204, 121, 167, 255}, {213, 94, 0, 255}, {86, 180, 233, 255}, {0, 0, 0, 255},
}

// NewPlot returns an empty plot with its axes named, from 0 upwards.
func NewPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.Legend.Top = true
	p.Y.Min = 0
	p.Add(plotter.NewGrid())
	return p
}

// Render draws a plot into a picture.
func Render(p *plot.Plot) ([]Picture, error) {
	c := vgsvg.New(vg.Points(560), vg.Points(300))
	p.Draw(draw.New(c))
	var b bytes.Buffer
	if _, err := c.WriteTo(&b); err != nil {
		return nil, err
	}
	url := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(b.Bytes())
	return []Picture{{Title: p.Title.Text, URL: template.URL(url)}}, nil //nolint:gosec // Our own drawing, in base64.
}
