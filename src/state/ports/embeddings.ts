/** The embedding model of the run's caller, where one is set up. */
export type Embeddings = {
  /**
   * How similar a text is to each of some standing texts, whose vectors are cached: cosine, -1 to 1. Null: no embedding model
   * is set up. Throws `model_*`, `no_model_available`.
   */
  compare(text: string, standing: readonly string[], signal: AbortSignal): Promise<number[] | null>
}

declare module './services.ts' {
  interface Services {
    embeddings: Embeddings
  }
}
