import { createJsonParser } from '../../models/transport/json-parser.ts'
import { mediaModelsRef, modelRequestsRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { createMediaPort } from './media-port.ts'

/** The largest image, recording or video that is fetched from an address: what a tool can read back. */
const maxBytes = 64 * 1024 * 1024

export default defineService({
  provides: mediaModelsRef,
  needs: { requests: modelRequestsRef },
  start({ requests }) {
    const { egress, clock } = requests
    const transport = { egress, clock, maxBytes, maxEvent: maxBytes, parseJson: createJsonParser() }
    return (caller) => createMediaPort({ ...requests, transport }, caller)
  },
})
