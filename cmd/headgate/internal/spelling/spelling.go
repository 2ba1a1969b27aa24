// Package spelling suggests names for mistyped words.
package spelling

import "github.com/spf13/cobra"

// Like returns the names that resemble word.
func Like(word string, names []string) []string {
	if word == "" {
		return nil
	}
	distance := min((len(word)+1)/3, 2) // a short word resembles too many names
	parent := &cobra.Command{SuggestionsMinimumDistance: distance}
	for _, name := range names {
		parent.AddCommand(&cobra.Command{Use: name, Run: func(*cobra.Command, []string) {}})
	}
	return parent.SuggestionsFor(word)
}
