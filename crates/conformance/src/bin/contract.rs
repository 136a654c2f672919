//! Holds the empty store at an address to the contract of stores, with the credentials of the environment:
//! `contract ADDRESS`. A program of its own, since an environment belongs to a process.

use hyperslab::array::Location;
use hyperslab::source::store::contract_tests;
use hyperslab::{Address, OpenOptions};

fn main() {
    let address = std::env::args().nth(1).expect("an address");
    let store = Location::store(&Address::parse(&address), &OpenOptions::default()).expect("a store");
    contract_tests::check_all(store.as_ref());
    println!("{} keeps the contract; {}", store.name(), store.traffic());
}
