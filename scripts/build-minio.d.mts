/** Where the S3 server of the tests is or will be. */
export const minioPath: string;
export function hasGo(): boolean;
/** Builds the server unless it is there; gives its path. */
export function buildMinio(): string;
