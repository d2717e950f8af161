package firesteel.spark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.attribute.PosixFilePermissions;

import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, but for how the mode of a file is set: Hadoop, without its native library, starts the
 * program chmod for every file that it creates, and a micro-batch creates a dozen. Files, their checksums and the
 * order of what happens to them are Hadoop's own.
 *
 * tools/make_local_files.py compiles this into local-files.jar.
 */
public class LocalFiles extends LocalFileSystem {
    public LocalFiles() {
        super(new Raw());
    }

    static class Raw extends RawLocalFileSystem {
        @Override
        public void setPermission(Path path, FsPermission permission) throws IOException {
            if ((permission.toShort() & ~0777) != 0) {
                // Bits that Java's own call does not know.
                super.setPermission(path, permission);
                return;
            }
            Files.setPosixFilePermissions(
                    pathToFile(path).toPath(), PosixFilePermissions.fromString(permission.toString()));
        }
    }
}
