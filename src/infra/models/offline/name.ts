/** Of the offline model, apart from it: who only needs its name need not load it. */
export const offlineModel = 'mason-offline'
