/** The folder with qemu, Node and the wheel of TensorRT-RTX for Arm, or where it will be. */
export const arm64Folder: string;
/** Downloads it unless it is there; gives the folder. */
export function getArm64(): string;
