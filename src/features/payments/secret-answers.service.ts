import { secretAnswersRef } from '../core.ref.ts'
import { defineService } from '../definitions.ts'
import { sealedAnswers } from './keys/sealed-answers.ts'

export default defineService({ provides: secretAnswersRef, needs: {}, start: () => sealedAnswers })
