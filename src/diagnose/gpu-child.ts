import { serve } from '../system/supervised-child.js';
import { loadAddon } from '../toolchain/addon.js';

serve(async () => loadAddon().gpus());
