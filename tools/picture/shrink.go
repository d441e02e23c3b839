package picture

import (
	"image"
	"image/draw"
)

// shrink returns an image reduced to size. Each new pixel is the mean of the area that it replaces.
func shrink(from image.Image, size image.Point) *image.RGBA {
	bounds := from.Bounds()
	to := image.NewRGBA(image.Rectangle{Max: size})
	row := image.NewRGBA(image.Rect(0, 0, bounds.Dx(), 1))
	columns := weightedSpans(bounds.Dx(), size.X)
	sums := make([]float32, size.X*4)
	for y, lines := range weightedSpans(bounds.Dy(), size.Y) {
		clear(sums)
		for i, weight := range lines.weights {
			draw.Draw(row, row.Bounds(), from, image.Pt(bounds.Min.X, bounds.Min.Y+lines.first+i), draw.Src)
			addRow(sums, row.Pix, columns, weight)
		}
		for x, sum := range sums {
			to.Pix[y*to.Stride+x] = uint8(sum + 0.5)
		}
	}
	return to
}

// addRow adds a row of old pixels to the sums of a new row. columns has the old columns of each new one, weight is the
// weight of the old row.
func addRow(sums []float32, pixels []uint8, columns []span, weight float32) {
	for x, column := range columns {
		var r, g, b, a float32
		for i, share := range column.weights {
			pixel := pixels[(column.first+i)*4:]
			r += share * float32(pixel[0])
			g += share * float32(pixel[1])
			b += share * float32(pixel[2])
			a += share * float32(pixel[3])
		}
		sum := sums[x*4:]
		sum[0] += weight * r
		sum[1] += weight * g
		sum[2] += weight * b
		sum[3] += weight * a
	}
}

// span says of which old rows or columns a new one consists. The weights add up to 1.
type span struct {
	first   int       // index of the first old one
	weights []float32 // weights of the first old one and the following
}

// weightedSpans returns the spans that reduce from rows or columns to the number to.
func weightedSpans(from, to int) []span {
	scale := float64(from) / float64(to)
	all := make([]span, to)
	for i := range all {
		start, end := float64(i)*scale, float64(i+1)*scale
		s := span{first: int(start)}
		for at := s.first; float64(at) < end-1e-9 && at < from; at++ {
			covered := min(float64(at+1), end) - max(float64(at), start)
			s.weights = append(s.weights, float32(covered/scale))
		}
		all[i] = s
	}
	return all
}
