/**
 * The revision of the conversion's behaviour, part of the identity of every converted engine: engines that an older converter made are not found again.
 * Goes up by one whenever the converter writes another model for the same model and options; a test compares digests of what it writes.
 */
export const CONVERSION_REVISION = 2;
