/** Why a line of a reference cannot be read. Stays within this room: readers tell it with the line number. */
export class LineFault extends Error {}
