import type { PromptText, ProvenanceOrigin } from './provenance.ts'

/** One section of a prompt. `origin` says where its words come from. */
export type PromptPart = {
  title: PromptText
  text: PromptText
  origin: ProvenanceOrigin
}
