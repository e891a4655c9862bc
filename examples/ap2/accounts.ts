/** A way to pay of an account, as the processor gets it. */
export type Method = {
  type: string
  alias: string
  network?: { name: string; formats: string[] }[]
  [more: string]: unknown
}
/** A user's account: where things are shipped, and how they are paid. */
export type Account = { shipping_address?: object; payment_methods: Method[] }

const toCard = (alias: string, more: object): Method => ({
  ...{ type: 'CARD', alias, network: [{ name: 'amex', formats: ['DPAN'] }], ...more },
  card_billing_address: { country: 'US', postal_code: '00000' },
})

/** The accounts of the demo. */
export const accounts = new Map<string, Account>([
  [
    'bugsbunny@gmail.com',
    {
      shipping_address: {
        ...{ recipient: 'Bugs Bunny', organization: 'Sample Organization', address_line: ['123 Main St'] },
        ...{
          city: 'Sample City',
          region: 'ST',
          postal_code: '00000',
          country: 'US',
          phone_number: '+1-000-000-0000',
        },
      },
      payment_methods: [
        toCard('American Express ending in 4444', {
          ...{ cryptogram: 'fake_cryptogram_abc123', token: '1111000000000000' },
          ...{ card_holder_name: 'John Doe', card_expiration: '12/2025' },
        }),
        toCard('American Express ending in 8888', {
          ...{ cryptogram: 'fake_cryptogram_ghi789', token: '2222000000000000' },
          ...{ card_holder_name: 'Bugs Bunny', card_expiration: '10/2027' },
        }),
        { type: 'BANK_ACCOUNT', alias: 'Primary bank account', account_number: '111' },
        {
          type: 'DIGITAL_WALLET',
          alias: "Bugs's PayPal account",
          brand: 'PayPal',
          account_identifier: 'foo@bar.com',
        },
      ],
    },
  ],
  [
    'daffyduck@gmail.com',
    {
      payment_methods: [
        {
          type: 'BANK_ACCOUNT',
          alias: 'Main checking account',
          brand: 'Bank of Money',
          account_number: '789',
        },
      ],
    },
  ],
  [
    'elmerfudd@gmail.com',
    {
      payment_methods: [
        {
          type: 'DIGITAL_WALLET',
          alias: "Fudd's PayPal",
          brand: 'PayPal',
          account_identifier: 'elmerfudd@gmail.com',
        },
      ],
    },
  ],
])
