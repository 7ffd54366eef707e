package wording

import "strings"

// Suggest returns a hint for an unknown name: the nearest known one, or else all of them.
func Suggest(name string, known []string) string {
	if best := Nearest(name, known); best != "" {
		return "did you mean " + best + "?"
	}
	if len(known) == 0 {
		return ""
	}
	return "known: " + strings.Join(known, ", ")
}

// longest is the most bytes of a name that is compared, because comparing takes time by its length.
const longest = 64

// Nearest returns the known name of which this one is probably a typing error, or "".
func Nearest(name string, known []string) string {
	if len(name) > longest {
		return ""
	}
	best, least := "", max(2, len(name)/3)+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), k); d < least && d < len(name) {
			best, least = k, d
		}
	}
	return best
}

// distance counts the letters to change, add, drop or swap with a neighbour.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	var before, last []int
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		before, last = last, row
		row = make([]int, len(y)+1)
		row[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			row[j+1] = min(row[j]+1, last[j+1]+1, last[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(y)]
}
