/** Units of a currency to whole millionths, as all costs are stored. */
export const toMicro = (money: number): number => Math.round(money * 1_000_000)

/** Millionths to units of the currency. Exact up to a billion, the limit of a number with six decimals. */
export const toMoney = (micro: bigint | string): number => Number(micro) / 1_000_000
