// `npm run bench:gpu [-- --only CASE …] [--out FOLDER]`: trtforge beside trtexec and NVIDIA's Python API on this machine's GPU, in one run
// (bench/gpu/main.mjs, which says what it needs).
import '../bench/gpu/main.mjs';
