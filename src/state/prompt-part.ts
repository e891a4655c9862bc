import type { ProvenanceOrigin } from './provenance.ts'

/**
 * One section of a prompt. `origin` says where its words come from; where they are only data, the text is between marks
 * (see `createDataFence`).
 */
export type PromptPart = {
  title: string
  text: string
  origin: ProvenanceOrigin
}
