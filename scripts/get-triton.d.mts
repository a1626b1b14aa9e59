/** The folder that holds Triton's server for the tests, or will. */
export const tritonFolder: string;
/** Downloads it unless it is there; gives the folder. */
export function getTriton(): string;
