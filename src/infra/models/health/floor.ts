/** Fewer healthy keys than this, and the pool of a vendor is reported: by the metric, and by `mason doctor`. */
export const poolFloor = 1
