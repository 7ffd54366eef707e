package main

import (
	"fmt"
	"strings"
)

// fishCompletion lists what each command takes, each entry with the condition that the words so far name the command.
func fishCompletion(list []commandModel) string {
	var b strings.Builder
	b.WriteString("# fish completion of onbeat. Load it with: onbeat completion fish | source\n")
	b.WriteString("function __onbeat_at\n  set -l command onbeat\n  for word in (commandline -opc)[2..-1]\n    switch \"$command $word\"\n      case")
	for _, c := range list[1:] {
		b.WriteString(" " + fishQuote(c.path))
	}
	b.WriteString("\n        set command \"$command $word\"\n    end\n  end\n  test \"$command\" = \"$argv\"\nend\ncomplete -c onbeat -f\n")
	for _, c := range list {
		here := "-n " + fishQuote("__onbeat_at "+c.path)
		for _, s := range c.subs {
			fmt.Fprintf(&b, "complete -c onbeat %s -a %s -d %s\n", here, s.name, fishQuote(s.help))
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c onbeat %s %s\n", here, fishFlag(f))
		}
		if more := fishOffer(c.predict, c.values); more != "" {
			fmt.Fprintf(&b, "complete -c onbeat %s %s\n", here, more)
		}
	}
	return b.String()
}

func fishFlag(f flagModel) string {
	s := "-l " + f.name
	if f.short != "" {
		s += " -s " + f.short
	}
	if f.takes {
		s += " -r " + fishOffer(f.predict, f.values)
	}
	return strings.TrimRight(s, " ") + " -d " + fishQuote(f.help)
}

func fishOffer(predict string, values []string) string {
	switch {
	case len(values) > 0:
		return "-a " + fishQuote(strings.Join(values, " "))
	case predict == "file":
		return "-F"
	case predict == "schedule":
		return "-a " + fishQuote("("+listSchedules+")")
	}
	return ""
}

// fishQuote puts text into single quotes, in which fish knows two escapes.
func fishQuote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'"
}
