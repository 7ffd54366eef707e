// Package install holds the tests of what users install: the image, the files of deploy and the configuration of a release.
package install
