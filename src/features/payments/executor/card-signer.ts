import { signJws } from '../mandates/tokens/jws.ts'
import type { ReceiptSigner } from './receipts.ts'

/** Signs agent cards with the key of receipts, as a detached JWS of their canonical JSON. */
export const createCardSigner = ({ issuer, signingKey }: ReceiptSigner) => ({
  issuer,
  async sign(card: Record<string, unknown>): Promise<{ protected: string; signature: string }> {
    const [header = '', , signature = ''] = (await signJws(card, await signingKey(), { typ: 'JOSE' })).split(
      '.',
    )
    return { protected: header, signature }
  },
})
