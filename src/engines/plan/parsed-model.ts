import type { WorkContext } from '../../events.js';
import { editModel } from '../../formats/onnx/model.js';
import { clearPlaceholders } from '../../formats/onnx/open-dimensions.js';
import { writeModel } from '../../formats/onnx/write.js';

/** The model as the library's parser reads it: as it is, or a copy of it in which axes that an exporter left without a name may differ; a typed model is one already. */
export const withoutPlaceholders = (path: string, copy: string, work: WorkContext): Promise<string> =>
  editModel(path, async (model) => {
    if (!clearPlaceholders(model.proto)) return path;
    await writeModel(model, copy, work, work.emit);
    return copy;
  });
