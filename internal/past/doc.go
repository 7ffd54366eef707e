// Package past reads what happened in a namespace, wherever it is: in Redis, and in the archive what Redis no longer has. A
// reader meets each entry once, in the order in which they were written. Without an archive it reads Redis alone; with one it
// asks the archive only for what Redis has dropped, so that an archive that is away keeps nobody from looking at the present.
package past
