/** Why the bytes of a file are not to be had, in words for whoever gave it: what happened, and what to do. */
export class FileFault extends Error {}
