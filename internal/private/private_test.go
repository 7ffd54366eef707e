package private_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/onbeat/onbeat/internal/private"
)

// needOwners skips where files have no owners.
func needOwners(t *testing.T) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("files have no owner and no mode here")
	}
}

// give makes a file another user's, which only root can do.
func give(t *testing.T, name string) {
	t.Helper()
	needOwners(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	if err := os.Lchown(name, 12345, 12345); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, text string, mode fs.FileMode) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func link(t *testing.T, target, name string) string {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Skip("no links here:", err)
	}
	return name
}

// refused fails unless err is a refusal in one line with a hint.
func refused(t *testing.T, what string, err error, reason string) {
	t.Helper()
	var r *private.Refusal
	if !errors.As(err, &r) || !strings.Contains(err.Error(), reason) || r.Hint == "" || strings.Contains(err.Error(), "\n") {
		t.Errorf("%s: %v, want a refusal with %q", what, err, reason)
	}
}

func TestDir_isMadeForThisUserOnly(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "new")
	for range 2 {
		if err := private.Dir(name); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(name); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestDir_refusesWhatOthersMayWriteTo(t *testing.T) {
	t.Parallel()
	needOwners(t)
	name := t.TempDir()
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	refused(t, "a folder for all", private.Dir(name), "others may write to it")
	through := link(t, name, filepath.Join(t.TempDir(), "link"))
	refused(t, "a link to it", private.Dir(through), "others may write to it")
	refused(t, "a link to it, with a slash", private.Dir(through+"/"), "others may write to it")
}

func TestDir_refusesWhatOthersOwn(t *testing.T) {
	t.Parallel()
	name := t.TempDir()
	theirs := link(t, name, filepath.Join(t.TempDir(), "link"))
	if err := private.Dir(theirs); err != nil {
		t.Errorf("a link of ours: %v", err)
	}
	give(t, theirs)
	refused(t, "a link of theirs", private.Dir(theirs+"/"), "belongs to user 12345")
	give(t, name)
	refused(t, "a folder of theirs", private.Dir(name), "belongs to user 12345")
}

func TestEntry_looksAtWhatIsBelow(t *testing.T) {
	t.Parallel()
	needOwners(t)
	dir := t.TempDir()
	if err := private.Entry(filepath.Join(dir, "nowhere")); err != nil {
		t.Errorf("what is not there: %v", err)
	}
	write(t, filepath.Join(dir, "mine"), "x", 0o644)
	if err := private.Entry(dir); err != nil {
		t.Errorf("what is ours: %v", err)
	}
	write(t, filepath.Join(dir, "open"), "x", 0o666)
	refused(t, "a file for all", private.Entry(dir), "others may write to it")
	if err := os.Remove(filepath.Join(dir, "open")); err != nil {
		t.Fatal(err)
	}
	link(t, "mine", filepath.Join(dir, "link"))
	refused(t, "a link", private.Entry(dir), "is a symbolic link")
}

func TestOpen_followsNoLinkAndChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := write(t, filepath.Join(dir, "target"), "precious", 0o600)
	name := link(t, target, filepath.Join(dir, "link"))
	_, err := private.Open(name)
	refused(t, "a link", err, "is a symbolic link")
	_, err = private.Read(name, 100)
	refused(t, "a link to read", err, "is a symbolic link")
	if data, err := private.ReadLinked(name, 100); string(data) != "precious" || err != nil {
		t.Errorf("a link that was meant: %q, %v", data, err)
	}
	f, err := private.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	if data, _ := os.ReadFile(target); string(data) != "precious" {
		t.Errorf("it holds %q", data)
	}
}

func TestOpen_refusesWhatOthersMayWrite(t *testing.T) {
	t.Parallel()
	needOwners(t)
	dir := t.TempDir()
	open := write(t, filepath.Join(dir, "open"), "x", 0o620)
	_, err := private.Open(open)
	refused(t, "a file for the group", err, "others may write to it")
	_, err = private.Open(dir)
	if err == nil {
		t.Error("a folder was opened to write")
	}
	_, err = private.Read(dir, 10)
	refused(t, "a folder", err, "not a regular file")
	theirs := write(t, filepath.Join(dir, "theirs"), "x", 0o600)
	give(t, theirs)
	_, err = private.Read(theirs, 10)
	refused(t, "a file of theirs", err, "belongs to user 12345")
}

func TestRead_isBounded(t *testing.T) {
	t.Parallel()
	name := write(t, filepath.Join(t.TempDir(), "f"), "12345", 0o600)
	if data, err := private.Read(name, 5); string(data) != "12345" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	_, err := private.Read(name, 4)
	refused(t, "a long one", err, "larger than 4 bytes")
}

func TestCreate_leavesWhatIsThere(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := write(t, filepath.Join(dir, "target"), "precious", 0o600)
	for _, name := range []string{target, link(t, target, filepath.Join(dir, "link")), link(t, "nowhere", filepath.Join(dir, "dangling"))} {
		if err := private.Create(name, []byte("x")); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if data, _ := os.ReadFile(target); string(data) != "precious" {
		t.Errorf("it holds %q", data)
	}
	if _, err := os.Stat(filepath.Join(dir, "nowhere")); err == nil {
		t.Error("a dangling link was followed")
	}
}

func TestReplace_takesThePlaceOfALink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := write(t, filepath.Join(dir, "target"), "precious", 0o600)
	name := link(t, target, filepath.Join(dir, "link"))
	if err := private.Replace(name, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if data, err := private.Read(name, 10); string(data) != "new" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
	if data, _ := os.ReadFile(target); string(data) != "precious" {
		t.Errorf("the target holds %q", data)
	}
	if info, err := os.Lstat(name); err != nil || runtime.GOOS != "windows" && info.Mode() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if list, _ := os.ReadDir(dir); len(list) != 2 {
		t.Errorf("something was left: %v", list)
	}
}
